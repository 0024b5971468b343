"""GPU memory that ran out while something was allocated: the class is the stage of the start."""

from collections.abc import Mapping
from typing import Any

from engine.failures.rule import INT, NUM, Around, Numbers, rule
from engine.failures.smaller import FEWEST_TOKENS, halved, lower_utilization

OUT_OF_GPU_MEMORY = "oom"  # no class of the contract: the stage decides which it is

# Functions of vLLM's workers that stand in the traceback (vllm/v1/worker, 0.10 to 0.33), the one that decides first:
# a dummy run is part of profiling, of capturing and of the warm-up.
_FRAMES: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "oom_graph",
        frozenset({"capture_model", "_capture_cudagraphs", "_warmup_and_capture", "capture_graphs"})
        | {"profile_cudagraph_memory"},
    ),
    ("oom_profile", frozenset({"profile_run", "determine_available_memory"})),
    (
        "oom_sampler",
        frozenset({"_dummy_sampler_run", "_dummy_pooler_run", "warmup_kernels", "_warmup_kernels", "kernel_warmup"})
        | {"compile_or_warm_up_model", "initialize_kv_cache", "initialize_from_config", "initialize_kv_cache_tensors"},
    ),
    ("oom_load", frozenset({"load_model", "load_weights", "init_device"})),
)
_WHEN = {
    "oom_load": "while loading the weights",
    "oom_profile": "while measuring the working memory",
    "oom_graph": "while capturing CUDA graphs",
    "oom_sampler": "while warming up after the KV cache was made",
}
_FEW_SEQUENCES = 128  # half of the default of GPUs below the H100 class
_FEW_TOKENS = 2048
_SMALL_GRAPH = 128


def oom_stage(around: Around) -> str:
    """The class by the functions in the traceback, else by what the log had shown up to then.

    "Graph capturing finished" is not trusted where the traceback says that another capture was under way.
    """
    for stage, names in _FRAMES:
        if not names.isdisjoint(around.frames):
            return stage
    facts = around.facts
    if facts.kv_cache_tokens is None:
        return "oom_load" if facts.weights_gib is None else "oom_profile"
    if facts.graph_capture_s is None and facts.engine_config.get("enforce_eager") != "True":
        return "oom_graph"
    return "oom_sampler"


def _out_of_memory(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    total = numbers.get("total_gib", around.gpu_total_gib)
    lower = None
    if around.utilization is not None:
        lower = lower_utilization(around.utilization, numbers.get("wanted_gib"), total)
    if around.serving:
        to = f" to {lower:g}" if lower else ""
        return {"class": "unknown", "when": "while serving", "do": f"Lower --gpu-memory-utilization{to}."}
    stage = oom_stage(around)
    if stage == "oom_load":
        do = _load_remedy(around)
    elif stage == "oom_profile":
        do = _profile_remedy(around)
    elif stage == "oom_graph":
        do = _graph_remedy(around, lower)
    else:
        do = _sampler_remedy(around.whole("max-num-seqs"), lower)
    return {"class": stage, "when": _WHEN[stage], "do": do}


def _sampler(numbers: Numbers, words: Mapping[str, str], around: Around) -> Mapping[str, Any]:
    lower = None
    if around.utilization is not None:
        total = numbers.get("total_gib", around.gpu_total_gib)
        lower = lower_utilization(around.utilization, numbers.get("wanted_gib"), total)
    return {"do": _sampler_remedy(int(numbers["requests"]), lower)}


def _load_remedy(around: Around) -> str:
    split = around.facts.engine_config.get("tensor_parallel_size", "")
    gpus = around.whole("tensor-parallel-size") or (int(split) if split.isdecimal() and len(split) < 5 else 1)
    return f"Use a quantized or smaller model, or split it over more GPUs: --tensor-parallel-size {2 * gpus}."


def _profile_remedy(around: Around) -> str:
    said = around.facts.engine_config.get("max_num_batched_tokens", "")
    tokens = around.whole("max-num-batched-tokens") or (int(said) if said.isdecimal() and len(said) < 10 else None)
    sequences = around.whole("max-num-seqs")
    fewer = _FEW_TOKENS if tokens is None else halved(tokens, max(FEWEST_TOKENS, sequences or 0))
    if fewer is None:
        return f"Lower --max-num-seqs to {halved(sequences or 2 * _FEW_SEQUENCES) or 1}."
    also = f", or --max-num-seqs to {halved(sequences) or 1}" if sequences else ""
    return f"Lower --max-num-batched-tokens to {fewer}{also}."


def _graph_remedy(around: Around, lower: float | None) -> str:
    # --cuda-graph-sizes up to 0.11, which before 0.11.2 had no other name
    newer = around.at_least(0, 11)
    flag = "--cuda-graph-sizes" if newer is False else "--max-cudagraph-capture-size"
    graphs = f"capture smaller graphs ({flag} {_SMALL_GRAPH})"
    if around.facts.kv_cache_tokens is None or lower is None:
        return f"{graphs[0].upper()}{graphs[1:]}, or none (--enforce-eager)."
    return f"Lower --gpu-memory-utilization to {lower:g}, or {graphs}."


def _sampler_remedy(sequences: int | None, lower: float | None) -> str:
    fewer = _FEW_SEQUENCES if sequences is None else halved(sequences)
    ways = [f"--max-num-seqs to {fewer}"] if fewer else []
    ways += [f"--gpu-memory-utilization to {lower:g}"] if lower else []
    return f"Lower {' or '.join(ways)}." if ways else "Use a GPU with more memory, or a smaller model."


RULES = (
    rule(
        "oom_sampler",
        rf"CUDA out of memory occurred when warming up (?:sampler|pooler) with (?P<requests>{INT}) dummy requests",
        "GPU memory ran out while warming up the sampler with {requests} requests.",
        "{do}",
        derive=_sampler,
        closer=True,
    ),
    rule(
        OUT_OF_GPU_MEMORY,
        rf"out of memory\. Tried to allocate (?P<wanted_size>{NUM} [KMG]iB)"
        rf"(?:.{{0,80}}? total capacity of (?P<total_size>{NUM} [KMG]iB))?"
        rf"(?:.{{0,80}}?of which (?P<free_size>{NUM} [KMG]iB) is free)?",
        "GPU memory ran out {when}: {wanted_gib} GiB more were needed[[, {free_gib} GiB were free]].",
        "{do}",
        derive=_out_of_memory,
    ),
    rule(
        OUT_OF_GPU_MEMORY,
        r"CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED|torch\.(?:cuda\.)?OutOfMemoryError"
        r"|CUDACachingAllocator.{0,80}INTERNAL ASSERT",
        "GPU memory ran out {when}.",
        "{do}",
        derive=_out_of_memory,
    ),
)
