"""All rules in the order in which they are tried, and the classes that there are."""

from engine.failures import (
    arguments,
    checkpoint,
    gpu_oom,
    hardware,
    kv_cache,
    lifetime,
    limits,
    lora,
    machine,
)
from engine.failures.rule import Rule

RULES: tuple[Rule, ...] = (
    *kv_cache.RULES,
    *gpu_oom.RULES,
    *limits.RULES,
    *arguments.RULES,
    *lora.RULES,
    *hardware.RULES,
    *machine.RULES,
    *checkpoint.RULES,
    *lifetime.RULES,
)

CLASSES: tuple[str, ...] = (
    *("kv_cache_too_small", "no_kv_memory", "free_memory_short", "oom_load", "oom_profile", "oom_graph", "oom_sampler"),
    *("host_oom", "batched_tokens_invalid", "model_len_invalid", "unknown_flag", "quantization_unsupported"),
    *("dtype_unsupported", "checkpoint_invalid", "gated_model", "disk_full", "disk_quota", "missing_tool"),
    *("missing_library", "driver_too_old", "port_in_use", "lora_rank", "lora_refused", "version_mismatch"),
    *("memory_race", "ready_timeout", "stalled", "health_broken", "kernel_missing", "interrupted", "unknown"),
)
