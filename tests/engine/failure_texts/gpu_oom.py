"""GPU memory that ran out."""

from tests.engine.failure_texts.text import CACHE, GRAPHS, LOADED, OOM, V0_10, V0_19, V0_25, Text, info, started, within

TEXTS: dict[str, Text] = {
    "oom-load": Text("oom_load", (OOM,), "--tensor-parallel-size 4", {"wanted_gib": 0.264, "free_gib": 0.012},
                     "loading", before=V0_19),
    "oom-load-by-frame": Text(
        "oom_load", (*within("load_model", "_initialize"), OOM), "--tensor-parallel-size 2", before=V0_25 + LOADED
    ),
    "oom-profile": Text(
        "oom_profile", (OOM,), "--max-num-batched-tokens to 4096", {"total_gib": 23.6}, "measuring",
        before=LOADED + info("Chunked prefill is enabled with max_num_batched_tokens=8192."),
    ),
    "oom-profile-by-frame": Text(
        "oom_profile",
        (*within("determine_available_memory", "profile_run", "_dummy_sampler_run"), OOM),
        "--max-num-batched-tokens to 2048, or --max-num-seqs to 256",
        before=LOADED + CACHE + started("'max_num_batched_tokens': 4096, 'max_num_seqs': 512"),
    ),
    "oom-graph": Text(
        "oom_graph",
        (*within("compile_or_warm_up_model", "capture_model"), "RuntimeError: CUDA error: out of memory"),
        "--gpu-memory-utilization to 0.87",
        before=V0_25 + LOADED + CACHE,
    ),
    "oom-graph-after-finished": Text(
        "oom_graph",
        (*within("compile_or_warm_up_model", "capture_model", "_dummy_run"), OOM),
        "--max-cudagraph-capture-size 128",
        before=V0_25 + LOADED + CACHE + GRAPHS,
    ),
    "oom-graph-0.10": Text(
        "oom_graph", ("RuntimeError: CUDA error: out of memory",), "--gpu-memory-utilization to 0.85",
        before=V0_10 + LOADED + CACHE,
    ),
    "oom-graph-estimate": Text(
        "oom_graph", (*within("determine_available_memory", "profile_cudagraph_memory"), OOM), "--enforce-eager",
        before=V0_25 + LOADED,
    ),
    "oom-after-graphs": Text(
        "oom_sampler", (OOM,), "--max-num-seqs to 128", cause="warming up", before=V0_25 + LOADED + CACHE + GRAPHS
    ),
    "oom-sampler": Text(
        "oom_sampler",
        (*within("_dummy_sampler_run"), OOM, "",
         "The above exception was the direct cause of the following exception:", "",
         "Traceback (most recent call last):",
         "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try "
         "lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."),
        "--max-num-seqs to 512",
        {"requests": 1024},
        "1024 requests",
        before=LOADED + CACHE + GRAPHS,
    ),
    "oom-pooler": Text(
        "oom_sampler",
        ("RuntimeError: CUDA out of memory occurred when warming up pooler with 256 dummy requests.",),
        "--max-num-seqs to 128",
    ),
}  # fmt: skip
