"""Flags of `vllm serve` that came and went, read from 17 wheels (0.10.0 to 0.33.0), and what to write instead."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from engine.launch.installation import version_numbers


@dataclass(frozen=True, slots=True)
class Gone:
    """`last` is the last of those wheels that had the flag, "" before 0.10; `instead` what does the same now, the
    newest spelling first, empty where nothing does."""

    last: str
    instead: tuple[str, ...] = ()


GONE: dict[str, Gone] = {
    "max-paddings": Gone(""),
    "use-v2-block-manager": Gone(""),
    "worker-use-ray": Gone("", ("distributed-executor-backend ray",)),
    "engine-use-ray": Gone(""),
    "disable-log-stats-interval": Gone(""),
    "num-scheduler-steps": Gone("0.10.0", ("async-scheduling",)),
    "multi-step-stream-outputs": Gone("0.10.0", ("stream-interval 1",)),
    "enable-prompt-adapter": Gone("0.10.0", ("enable-lora",)),
    "max-seq-len-to-capture": Gone("0.10.2", ("max-cudagraph-capture-size", "cuda-graph-sizes")),
    "rope-scaling": Gone("0.10.2", ("hf-overrides",)),
    "rope-theta": Gone("0.10.2", ("hf-overrides",)),
    "preemption-mode": Gone("0.10.2"),
    "scheduler-delay-factor": Gone("0.10.2"),
    "enable-lora-bias": Gone("0.10.2"),
    "guided-decoding-backend": Gone("0.10.2", ("structured-outputs-config",)),
    "guided-decoding-disable-fallback": Gone("0.10.2", ("structured-outputs-config",)),
    "guided-decoding-disable-any-whitespace": Gone("0.10.2", ("structured-outputs-config",)),
    "guided-decoding-disable-additional-properties": Gone("0.10.2", ("structured-outputs-config",)),
    "disable-async-output-proc": Gone("0.10.2"),
    "task": Gone("0.11.2", ("runner", "convert")),
    "cuda-graph-sizes": Gone("0.11.2", ("cudagraph-capture-sizes",)),
    "lora-extra-vocab-size": Gone("0.11.2"),
    "num-lookahead-slots": Gone("0.11.2", ("speculative-config",)),
    "override-pooler-config": Gone("0.11.2", ("pooler-config",)),
    "disable-mm-preprocessor-cache": Gone("0.11.2", ("mm-processor-cache-gb 0",)),
    "disable-log-requests": Gone("0.15.1", ("no-enable-log-requests",)),
    "logits-processor-pattern": Gone("0.15.1"),
    "swap-space": Gone("0.17.1", ("kv-offloading-size",)),
    "disable-frontend-multiprocessing": Gone("0.17.1"),
    "calculate-kv-scales": Gone("0.26.0"),
    "max-num-partial-prefills": Gone("0.26.0"),
    "max-long-partial-prefills": Gone("0.26.0"),
    "override-attention-dtype": Gone("0.26.0"),
}

# Flag → the first of those wheels that had it, and what an older vLLM takes in its place.
CAME: dict[str, tuple[str, str | None]] = {
    "enable-log-requests": ("0.10.2", None),
    "kv-cache-memory-bytes": ("0.10.2", "gpu-memory-utilization"),
    "runner": ("0.10.2", "task"),
    "convert": ("0.10.2", "task"),
    "cudagraph-capture-sizes": ("0.11.2", "cuda-graph-sizes"),
    "max-cudagraph-capture-size": ("0.11.2", "cuda-graph-sizes"),
    "structured-outputs-config": ("0.11.2", "guided-decoding-backend"),
    "attention-backend": ("0.13.0", None),
    "profiler-config": ("0.13.0", None),
    "kv-cache-metrics": ("0.13.0", None),
    "enable-mfu-metrics": ("0.15.1", None),
    "disable-access-log-for-endpoints": ("0.17.1", "disable-uvicorn-access-log"),
    "performance-mode": ("0.17.1", None),
    "shutdown-timeout": ("0.19.1", None),
    "lora-target-modules": ("0.19.1", None),
    "scheduler-reserve-full-isl": ("0.19.1", None),
    "device-ids": ("0.24.0", None),
    "jit-monitor-mode": ("0.25.1", None),
    "logging-config": ("0.32.0", None),
    "log-level": ("0.32.0", None),
    "max-num-active-seqs": ("0.32.0", "max-num-seqs"),
    "max-num-queued-reqs": ("0.32.0", None),
    "max-num-queued-tokens": ("0.32.0", None),
    "device-memory-utilization": ("0.32.0", "gpu-memory-utilization"),
    "grpc-port": ("0.32.0", None),
    "sse-keep-alive-interval": ("0.32.0", None),
    "sleep-mode-backend": ("0.33.0", None),
    "watchdog-config": ("0.33.0", None),
}

# Flags that all of 0.10 to 0.33 have: for a near miss where no installation could be asked.
LASTING = frozenset(
    [
        "api-key",
        "api-server-count",
        "async-scheduling",
        "block-size",
        "chat-template",
        "code-revision",
        "compilation-config",
        "config",
        "config-format",
        "cpu-offload-gb",
        "data-parallel-size",
        "data-parallel-size-local",
        "disable-custom-all-reduce",
        "disable-log-stats",
        "disable-uvicorn-access-log",
        "distributed-executor-backend",
        "download-dir",
        "dtype",
        "enable-auto-tool-choice",
        "enable-chunked-prefill",
        "enable-expert-parallel",
        "enable-lora",
        "enable-prefix-caching",
        "enable-prompt-tokens-details",
        "enable-sleep-mode",
        "enforce-eager",
        "generation-config",
        "gpu-memory-utilization",
        "hf-config-path",
        "hf-overrides",
        "hf-token",
        "host",
        "kv-cache-dtype",
        "kv-transfer-config",
        "limit-mm-per-prompt",
        "load-format",
        "long-prefill-token-threshold",
        "lora-modules",
        "max-cpu-loras",
        "max-logprobs",
        "max-lora-rank",
        "max-loras",
        "max-model-len",
        "max-num-batched-tokens",
        "max-num-seqs",
        "max-parallel-loading-workers",
        "middleware",
        "mm-processor-kwargs",
        "model",
        "model-loader-extra-config",
        "num-gpu-blocks-override",
        "override-generation-config",
        "pipeline-parallel-size",
        "port",
        "quantization",
        "reasoning-parser",
        "response-role",
        "revision",
        "root-path",
        "scheduling-policy",
        "seed",
        "served-model-name",
        "skip-tokenizer-init",
        "speculative-config",
        "ssl-certfile",
        "ssl-keyfile",
        "stream-interval",
        "tensor-parallel-size",
        "tokenizer",
        "tokenizer-mode",
        "tool-call-parser",
        "trust-remote-code",
        "uvicorn-log-level",
    ]
)

_NEAR = 0.72


def flag_advice(flag: str, known: Iterable[str] | None, version: str | None) -> str:
    """What to write in place of `flag` (no dashes), one sentence. `known` are the flags that the installation has."""
    has = None if known is None else frozenset(known)
    if has and flag.removeprefix("no-") in has and flag not in has:
        return f"--{flag.removeprefix('no-')} has no --no- form here: take it out."
    if gone := GONE.get(flag):
        when = f"after vLLM {gone.last}" if gone.last else "before vLLM 0.10"
        instead = next((each for each in gone.instead if has is None or each.split()[0] in has), None)
        return f"--{flag} was removed {when}: " + (f"use --{instead}." if instead else "take it out.")
    if (came := CAME.get(flag)) and not _has_version(version, came[0]):
        older = came[1] if has is None or came[1] in has else None
        return f"--{flag} came with vLLM {came[0]}: " + (f"use --{older}, or " if older else "") + "upgrade vLLM."
    pool = has or LASTING | CAME.keys()
    if near := get_close_matches(flag, sorted(pool), 1, cutoff=_NEAR):
        return f"Did you mean --{near[0]}?"
    return f"Take --{flag} out: this vLLM has no flag like it."


def _has_version(version: str | None, first: str) -> bool:
    numbers, wanted = version_numbers(version) if version else None, version_numbers(first)
    return numbers is not None and wanted is not None and numbers >= wanted
