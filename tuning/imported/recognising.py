"""Which JSON value is a result of `vllm bench serve`, and what the others are.

A result is known by `duration`, `completed` and a throughput, which every version writes, from
benchmarks/benchmark_serving.py of 2024 to 0.33. Look-alikes of other tools are refused by name: the same words mean
other quantities there (TTFT and TPOT of GuideLLM, AIPerf, SGLang and vLLM are four definitions).
"""

from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["result", "failure", "other"]

_THROUGHPUTS = ("request_throughput", "output_throughput", "total_token_throughput")
_NOT_COMPARABLE = "its metrics are defined otherwise, so they cannot stand beside vLLM's"


def recognise(value: Any) -> tuple[Kind, str]:
    """The kind of `value`, with a line about it: of a failure what happened, of another why it is no result."""
    if not isinstance(value, Mapping):
        return "other", "no result of `vllm bench serve`: not a JSON object"
    if "total_output_tokens_retokenized" in value or "mean_e2e_latency_ms" in value:
        return "other", f"a result of SGLang's bench_serving: {_NOT_COMPARABLE}"
    if _number(value.get("duration")) and _number(value.get("completed")) and any(key in value for key in _THROUGHPUTS):
        return "result", ""
    if "error_type" in value and "error" in value and "serve_overrides" in value:
        return "failure", f"{value['error_type']}: {value['error']}"
    return "other", _other(value)


def _other(value: Mapping[str, Any]) -> str:
    if {"benchmark", "metric"} <= value.keys():
        return "the same results in PyTorch's benchmark format; the file beside it without .pytorch is read"
    if "benchmarks" in value and ("args" in value or "metadata" in value):
        return f"a report of GuideLLM: {_NOT_COMPARABLE}"
    if "input_config" in value or "profile_export_file" in value:
        return f"a report of AIPerf or GenAI-Perf: {_NOT_COMPARABLE}"
    if {"elapsed_time", "tokens_per_second"} <= value.keys():
        return "a result of `vllm bench throughput`, which measures without a server"
    if {"avg_latency", "latencies"} <= value.keys():
        return "a result of `vllm bench latency`, which measures without a server"
    if "startup" in " ".join(map(str, value)) and "duration" not in value:
        return "a result of `vllm bench startup`, which measures starts and not serving"
    missing = [key for key in ("duration", "completed", "request_throughput") if key not in value]
    if missing:
        return f"no result of `vllm bench serve`: it has no {', '.join(missing)}"
    return "no result of `vllm bench serve`: duration or completed is not a number"


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
