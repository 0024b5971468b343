"""GPU memory before anything is allocated."""

from tests.engine.failure_texts.text import LOADED, V0_19, V0_25, Text, info, started, too_small

TEXTS: dict[str, Text] = {
    "kv-old": Text(
        "kv_cache_too_small",
        (too_small("models's", 40960, "5.62", "2.25", ". Based on the available memory, the estimated maximum model "
                   "length is 16384. Try increasing `gpu_memory_utilization` or decreasing `max_model_len`"),),
        "--max-model-len to 16384",
        {"short_gib": 3.37, "longest_model_len": 16384, "max_model_len": 40960},
        "3.37 GiB too little",
    ),
    "kv-new-with-total": Text(
        "kv_cache_too_small",
        (too_small("model's", 32768, "4.0", "1.5", ". Based on the available memory, the estimated maximum model "
                   "length is 12288. Try increasing"),),
        "--gpu-memory-utilization to 0.91, or lower --max-model-len to 12288",
        {"needed_utilization": 0.91, "short_gib": 2.5},
        before=started("'gpu_memory_utilization': 0.8, 'max_model_len': 32768")
        + info("Free memory on device cuda:0 (23.2/23.6 GiB) on startup. Desired GPU memory utilization is (0.8, 18.9 "
               "GiB). Replace it with `--kv-cache-memory=1` to fit"),
    ),
    "kv-cut-short": Text(
        "kv_cache_too_small",
        (too_small("model's", 8192, "1.0", "0.5", ""),),
        "--max-model-len to about 4096",
        {"longest_model_len": 4096},
    ),
    "kv-none-fits": Text(
        "kv_cache_too_small",
        (too_small("models's", 40960, "5.62", "-1.25", ". Try increasing `gpu_memory_utilization`"),),
        "--gpu-memory-utilization to 0.92: no length fits",
        {"short_gib": 6.87},
        before=V0_25 + started("'gpu_memory_utilization': 0.5"),
    ),
    "kv-of-a-fixed-size": Text(
        "kv_cache_too_small",
        (too_small("model's", 8192, "1.5", "1.0", ". Based on the available memory, the estimated maximum model length "
                   "is 5456. Try increasing"),),
        "Raise --kv-cache-memory-bytes to 1610612736, or lower --max-model-len to 5456",
        before=started("'kv_cache_memory_bytes': 1073741824, 'gpu_memory_utilization': 0.5"),
    ),
    "no-kv": Text(
        "no_kv_memory",
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
         "initializing the engine.",),
        "--gpu-memory-utilization to 0.9",
        {"available_gib": -0.95, "weights_gib": 14.29},
        before=V0_19 + LOADED + info("Available KV cache memory: -0.95 GiB") + started("'gpu_memory_utilization': 0.3"),
    ),
    "no-kv-auto-fit": Text(
        "no_kv_memory",
        ("ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token.",),
        "smaller or quantized",
    ),
    "no-kv-cpu": Text(
        "no_kv_memory",
        ("ValueError: Available memory on node 0 (7.29/9.96 GiB) on kv cache allocation is less than requested memory "
         "for kv (-0.08/0.92 GiB). Reduce CPU memory used by other processes.",),
        "--gpu-memory-utilization to 0.92",
        {"available_gib": -0.08, "budget_gib": 0.92},
        before=started("'gpu_memory_utilization': 0.1") + V0_25,
    ),
    "free-old": Text(
        "free_memory_short",
        ("ValueError: Free memory on device (10.5/23.6 GiB) on startup is less than desired GPU memory utilization "
         "(0.9, 21.3 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",),
        "--gpu-memory-utilization to 0.44",
        {"highest_utilization": 0.44, "free_gib": 10.5},
    ),
    "free-device": Text(
        "free_memory_short",
        ("ValueError: Free memory on device cuda:0 (76.2/79.18 GiB) on startup is less than desired GPU memory "
         "utilization (0.98, 77.6 GiB). Decrease",),
        "--gpu-memory-utilization to 0.96",
        {"utilization": 0.98, "wanted_gib": 77.6},
    ),
    "free-external": Text(
        "free_memory_short",
        ("ValueError: Free memory on device cuda:0 (10.5/23.6 GiB) on startup is less than the engine's budget after "
         "excluding external process's weights (0.9, 21.3 GiB).",),
        "0.44",
    ),
    "free-cpu": Text(
        "free_memory_short",
        ("ValueError: Available memory on node 0 (7.29/9.96 GiB) on startup is less than desired CPU memory "
         "utilization (0.92, 9.16 GiB). On the CPU backend",),
        "--gpu-memory-utilization to 0.73",
    ),
    "free-cpu-cache": Text(
        "free_memory_short",
        ("ValueError: Available memory on node 0 (7.29/9.96 GiB) on kv cache allocation is less than requested memory "
         "for kv (8.0 GiB). Decrease --kv-cache-memory-bytes",),
        "--kv-cache-memory-bytes to 7516192768",
        {"free_gib": 7.29, "wanted_gib": 8.0},
    ),
    "race": Text(
        "memory_race",
        ("AssertionError: Error in memory profiling. Initial free memory 20.1 GiB, current free memory 22.2 GiB. This "
         "happens when other processes sharing the same container release GPU memory while vLLM is profiling.",),
        "again",
        {"first_gib": 20.1, "later_gib": 22.2},
    ),
}  # fmt: skip
