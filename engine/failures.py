"""Why vLLM does not start: what its log says → class, cause, numbers, remedy. One rule a wording.

To add one, add a `Rule`. Named groups of its pattern are what cause and remedy may speak of; a group that is a number
becomes a number of the explanation under its own name, and `x_size` ("270.00 MiB") becomes `x_gib`. In cause and remedy
a part in [[double brackets]] is left out where something it names is missing. Of several rules that match, the one with
the earliest line counts (what follows a cause are its consequences), on one line the one that comes first in the table.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.records import LogFacts

Numbers = dict[str, float | int]

OUT_OF_GPU_MEMORY = "oom"  # no class of the contract: the stage of the start decides which it is


@dataclass(frozen=True, slots=True)
class Rule:
    """One wording. `facts` adds numbers from the log's facts (name → field); `derive` computes further ones."""

    failure_class: str
    pattern: re.Pattern[str]
    cause: str
    remedy: str
    facts: Mapping[str, str] | None = None
    derive: Callable[[Numbers], Numbers] | None = None


_NUM = r"\d{1,9}(?:\.\d{1,9})?"  # bounded, so that no log can make float() fail or give an infinity
_INT = r"\d{1,12}"


def _highest_utilization(numbers: Numbers) -> Numbers:
    """The largest gpu-memory-utilization, in hundredths, that the free memory allows."""
    if "free_gib" not in numbers or not numbers.get("total_gib"):
        return {}
    return {"highest_utilization": math.floor(100 * numbers["free_gib"] / numbers["total_gib"]) / 100}


def _rule(
    failure_class: str,
    pattern: str,
    cause: str,
    remedy: str,
    facts: Mapping[str, str] | None = None,
    derive: Callable[[Numbers], Numbers] | None = None,
) -> Rule:
    return Rule(failure_class, re.compile(pattern), cause, remedy, facts, derive)


RULES: tuple[Rule, ...] = (
    # "models's" up to 0.21.0, "model's" from 0.22.1 on; the longest length only where one fits.
    _rule(
        "kv_cache_too_small",
        rf"To serve at least one request with the models?'s max seq len \((?P<max_model_len>{_INT})\), "
        rf"\((?P<needed_gib>{_NUM}) GiB KV\s+cache is needed, which is larger than the available KV cache\s+memory "
        rf"\((?P<available_gib>-?{_NUM}) GiB\)"
        rf"(?:\.\s+Based on the available memory, the estimated maximum model length is "
        rf"(?P<longest_model_len>{_INT}))?",
        "One request of {max_model_len} tokens needs {needed_gib} GiB of KV cache; {available_gib} GiB are left.",
        "Raise gpu-memory-utilization[[, or lower max-model-len to {longest_model_len}]].",
    ),
    _rule(
        "no_kv_memory",
        r"No available memory for the cache blocks|Cannot auto-fit max_model_len: not enough GPU memory",
        "Weights and working memory leave nothing for the KV cache[[ ({available_gib} GiB)]].",
        "Raise gpu-memory-utilization, or use a smaller or quantized model.",
        facts={"available_gib": "kv_cache_gib", "weights_gib": "weights_gib"},
    ),
    # No device name up to 0.13.0; a second wording after excluding another process's weights from 0.32 on.
    _rule(
        "free_memory_short",
        rf"Free memory on device (?:\S{{1,40}} )?\((?P<free_gib>{_NUM})/(?P<total_gib>{_NUM}) GiB\) on startup "
        rf"is less than [^(]{{0,80}}\((?P<utilization>{_NUM}), (?P<wanted_gib>{_NUM}) GiB\)",
        "{free_gib} of {total_gib} GiB are free on the GPU; gpu-memory-utilization {utilization} wants {wanted_gib}.",
        "Stop what else uses the GPU[[, or lower gpu-memory-utilization to {highest_utilization}]].",
        derive=_highest_utilization,
    ),
    # The CPU build: the flag rules the share of a node's memory, and the second wording comes after loading.
    _rule(
        "free_memory_short",
        rf"Available memory on node \S+ \((?P<free_gib>{_NUM})/(?P<total_gib>{_NUM}) GiB\) on startup is less than "
        rf"desired CPU memory utilization \((?P<utilization>{_NUM}), (?P<wanted_gib>{_NUM}) GiB\)",
        "{free_gib} of {total_gib} GiB memory are free; gpu-memory-utilization {utilization} wants {wanted_gib}.",
        "Stop what else uses memory[[, or lower gpu-memory-utilization to {highest_utilization}]].",
        derive=_highest_utilization,
    ),
    _rule(
        "no_kv_memory",
        rf"on kv cache allocation is less than requested memory for kv "
        rf"\((?P<available_gib>-{_NUM})/(?P<budget_gib>{_NUM})",
        "Weights and working memory leave nothing of {budget_gib} GiB for the KV cache ({available_gib} GiB).",
        "Raise gpu-memory-utilization (it rules the memory of the CPU build too).",
    ),
    _rule(
        "free_memory_short",
        rf"Available memory on node \S+ \((?P<free_gib>{_NUM})/(?P<total_gib>{_NUM}) GiB\) on kv cache allocation is "
        rf"less than requested memory for kv \((?P<wanted_gib>{_NUM})",
        "{free_gib} of {total_gib} GiB memory are free; the KV cache wants {wanted_gib}.",
        "Stop what else uses memory, or lower gpu-memory-utilization.",
    ),
    _rule(
        "memory_race",
        rf"Error in memory profiling\. Initial free memory (?P<first_gib>{_NUM}) GiB, "
        rf"current free memory (?P<later_gib>{_NUM})",
        "Another process gave GPU memory back while this server measured it ({first_gib}, then {later_gib} GiB free).",
        "Start the server again when nothing else on the GPU starts or stops.",
    ),
    _rule(
        "oom_sampler",
        rf"CUDA out of memory occurred when warming up (?:sampler|pooler) with (?P<requests>{_INT}) dummy requests",
        "GPU memory ran out while warming up the sampler with {requests} requests.",
        "Lower max-num-seqs or gpu-memory-utilization.",
    ),
    _rule(
        OUT_OF_GPU_MEMORY,
        rf"out of memory\. Tried to allocate (?P<wanted_size>{_NUM} [KMG]iB)"
        rf"(?:.*?of which (?P<free_size>{_NUM} [KMG]iB) is free)?",
        "GPU memory ran out {stage}: {wanted_gib} GiB more were needed[[, {free_gib} GiB were free]].",
        "{stage_remedy}",
    ),
    _rule(
        OUT_OF_GPU_MEMORY,
        r"CUDA error: out of memory|torch\.(?:cuda\.)?OutOfMemoryError",
        "GPU memory ran out {stage}.",
        "{stage_remedy}",
    ),
    _rule(
        "batched_tokens_invalid",
        rf"max_num_batched_tokens \((?P<max_num_batched_tokens>{_INT})\) must be greater than or equal to max_num_seqs"
        rf" \((?P<max_num_seqs>{_INT})\)",
        "max-num-batched-tokens {max_num_batched_tokens} is below max-num-seqs {max_num_seqs}.",
        "Raise max-num-batched-tokens to {max_num_seqs} or more, or lower max-num-seqs.",
    ),
    _rule(
        "batched_tokens_invalid",
        rf"max_num_batched_tokens \((?P<max_num_batched_tokens>{_INT})\) "
        rf"is smaller than max_model_len \((?P<max_model_len>{_INT})\)",
        "max-num-batched-tokens {max_num_batched_tokens} is below max-model-len {max_model_len}, unchunked.",
        "Leave chunked prefill on, or raise max-num-batched-tokens to {max_model_len}.",
    ),
    _rule(
        "model_len_invalid",
        rf"max_model_len \((?P<max_model_len>{_INT})\) is greater than the derived max_model_len "
        rf"\(\w+=(?P<longest_model_len>{_NUM})",
        "max-model-len {max_model_len} is above what the model's config.json allows, {longest_model_len}.",
        "Lower max-model-len to {longest_model_len}, or scale the model's rope.",
    ),
    _rule(
        "unknown_flag",
        r"error: unrecognized arguments: (?P<arguments>.+)",
        "This vLLM does not know: {arguments}.",
        "Take the flag out; it may belong to an older or newer vLLM.",
    ),
    _rule(
        "quantization_unsupported",
        r"Cannot find the config file for (?P<method>[\w-]+)",
        "The checkpoint is not quantized with {method}: it has no config for it.",
        "Leave quantization out, or use a checkpoint that was quantized with {method}.",
    ),
    _rule(
        "quantization_unsupported",
        rf"quantization method (?P<method>\S+) is not supported for the current GPU\. "
        rf"Minimum capability: (?P<minimum>{_INT})\. Current capability: (?P<current>{_INT})",
        "{method} needs compute capability {minimum}, this GPU has {current}.",
        "Use a checkpoint of another quantization, or a newer GPU.",
    ),
    _rule(
        "dtype_unsupported",
        r"(?<![\w.])(?P<dtype>[\w.]{1,40}) is not supported for quantization method (?P<method>\S+)\. Supported dtypes",
        "{method} does not work with dtype {dtype}.",
        "Set dtype to half.",
    ),
    _rule(
        "dtype_unsupported",
        rf"Bfloat16 is only supported on GPUs with compute capability of at least (?P<minimum>{_NUM})\.",
        "This GPU does not know bfloat16 (it needs compute capability {minimum}).",
        "Set dtype to half.",
    ),
    _rule(
        "lora_rank",
        rf"LoRA rank (?P<rank>{_INT}) is greater than max_lora_rank (?P<max_lora_rank>{_INT})",
        "The adapter has rank {rank}, max-lora-rank is {max_lora_rank}.",
        "Set max-lora-rank to {rank} or the next size that vLLM takes (8, 16, 32, 64, 128, 256, 320, 512).",
    ),
    _rule(
        "lora_refused",
        r"(?P<reason>vLLM (?:only supports modules_to_save being None|does not yet support DoRA)"
        r"|Adapter bias is not supported|(?<![\w.])[\w.]{1,200} is unsupported LoRA weight)",
        "The adapter is of a kind that vLLM refuses: {reason}.",
        "Train the adapter without it, or merge it into the model.",
    ),
    _rule(
        "port_in_use",
        r"(?i)address already in use",
        "The port is taken by another process.",
        "Stop the other server, or choose another port.",
    ),
    _rule(
        "disk_full",
        r"No space left on device",
        "The disk is full.",
        "Free space where the model, the caches or the temporary files lie.",
    ),
    _rule(
        "disk_quota", r"Disk quota exceeded", "The disk quota is used up.", "Free space, or move the caches (HF_HOME)."
    ),
    _rule(
        "checkpoint_invalid",
        r"Invalid repository ID or local directory specified: ?'?(?P<model>[^'\s]+)?",
        "The model[[ {model}]] is neither a folder with a config.json nor a repository of the hub.",
        "Check the path; on the pod itself it may differ from the one on your machine.",
    ),
    _rule(
        "gated_model",
        r"GatedRepoError|Access to model (?P<model>\S+) is restricted|You are trying to access a gated repo",
        "The model[[ {model}]] is gated: the hub asks who you are.",
        "Accept its licence on the hub and set HF_TOKEN in [server.env].",
    ),
    _rule(
        "missing_library",
        r"ImportError: (?P<library>lib[\w.+-]+): cannot open shared object file",
        "The library {library} is missing.",
        "Install it, or a vLLM that was built for this machine's CUDA.",
    ),
    _rule(
        "driver_too_old",
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient",
        "The NVIDIA driver is older than this vLLM's CUDA needs.",
        "Update the driver, or install a vLLM built for an older CUDA.",
    ),
    _rule(
        "kernel_missing",
        r"no kernel image is available for execution on the device",
        "This vLLM has no kernels for this GPU.",
        "Install a vLLM that supports the GPU's compute capability.",
    ),
    _rule(
        "host_oom",
        r"[Ww]orker proc .* died unexpectedly \(exit code: -9\)",
        "A worker was killed (signal 9), most likely because the machine's memory ran out.",
        "Give the container more memory, or load with fewer parallel workers.",
    ),
    _rule(
        "ready_timeout",
        rf"Timed out waiting for engine core processes to start\.(?:.*Waited (?P<waited_s>{_INT})\s?s)?",
        "The engine was not ready in time[[ ({waited_s} s)]].",
        "Raise VLLM_ENGINE_READY_TIMEOUT_S, or find what is slow in the log.",
    ),
)

# Where a start was when GPU memory ran out, from the facts its log had shown by then.
_STAGES: Mapping[str, tuple[str, str]] = {
    "oom_load": ("while loading the weights", "Use a quantized or smaller model, or more GPUs (tensor-parallel-size)."),
    "oom_profile": ("while measuring the working memory", "Lower max-num-batched-tokens or max-num-seqs."),
    "oom_graph": ("while capturing CUDA graphs", "Lower gpu-memory-utilization, or the largest CUDA graph size."),
    "oom_sampler": ("while warming up after the KV cache was made", "Lower gpu-memory-utilization or max-num-seqs."),
}


def memory_stage(facts: LogFacts) -> tuple[str, str, str]:
    """The class of an out-of-memory error, how to say when it was, and its remedy."""
    if facts.kv_cache_tokens is None:
        failure_class = "oom_load" if facts.weights_gib is None else "oom_profile"
    elif facts.graph_capture_s is None and facts.engine_config.get("enforce_eager") != "True":
        failure_class = "oom_graph"
    else:
        failure_class = "oom_sampler"
    return failure_class, *_STAGES[failure_class]
