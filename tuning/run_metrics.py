"""The metrics of one run: from the result of `vllm bench serve`, the samples taken meanwhile and the client itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.numbers import finite
from engine.records import BenchOutcome
from store.records import SampleRecord
from tuning.checks.prefix_cache import increase, prompt_hits
from tuning.records import RUN_METRICS

_LATENCIES = ("ttft", "itl", "tpot", "e2el")
_BETWEEN_TOKENS = ("itl", "tpot")


def run_metrics(outcome: BenchOutcome, samples: Sequence[SampleRecord]) -> dict[str, float | None]:
    """Every name of RUN_METRICS with its value, None where it cannot be known. `samples` ascend in time.

    Latencies are None where no request succeeded, and those between tokens where no answer had two; vLLM writes 0.
    """
    metrics: dict[str, float | None] = dict.fromkeys(RUN_METRICS)
    metrics |= _load(outcome.result)
    metrics |= _latencies(outcome.result, metrics)
    metrics |= _observed(samples, metrics["output_tokens"])
    metrics["client_cpu_perc"] = finite(outcome.client_cpu_perc)
    metrics["client_lag_p99_ms"] = finite(outcome.client_lag_p99_ms)
    return metrics


def _load(result: Mapping[str, Any]) -> dict[str, float | None]:
    completed, failed = finite(result.get("completed")), finite(result.get("failed"))
    planned = finite(result.get("num_prompts"))
    if failed is None and completed is not None and planned is not None:
        failed = max(planned - completed, 0.0)  # vLLM before 0.11.2 does not count them
    asked = None if completed is None or failed is None else completed + failed
    return {
        "total_tok_per_s": finite(result.get("total_token_throughput")),
        "output_tok_per_s": finite(result.get("output_throughput")),
        "requests_per_s": finite(result.get("request_throughput")),
        # vLLM of 2025 wrote the key with a colon.
        "goodput_per_s": finite(result.get("request_goodput", result.get("request_goodput:"))),
        "error_rate": failed / asked if failed is not None and asked else None,
        "duration_s": finite(result.get("duration")),
        "requests_completed": completed,
        "requests_failed": failed,
        "input_tokens": finite(result.get("total_input_tokens")),
        "output_tokens": finite(result.get("total_output_tokens")),
    }


def _latencies(result: Mapping[str, Any], load: Mapping[str, float | None]) -> dict[str, float | None]:
    completed, tokens = load["requests_completed"], load["output_tokens"]
    found: dict[str, float | None] = {}
    for what in _LATENCIES:
        measured = completed != 0 and not (
            what in _BETWEEN_TOKENS and completed is not None and tokens is not None and tokens <= completed
        )
        for stat in ("mean", "median", "p90", "p99"):
            value = result.get(f"{stat}_{what}_ms", result.get(f"p50_{what}_ms") if stat == "median" else None)
            found[f"{stat}_{what}_ms"] = finite(value) if measured else None
    return found


def _observed(samples: Sequence[SampleRecord], output_tokens: float | None) -> dict[str, float | None]:
    hits = prompt_hits(samples)
    energy = increase(samples, lambda sample: sample.gpu_energy_j)
    power = _values(samples, lambda sample: sample.gpu_power_w)
    return {
        "preemptions": increase(samples, lambda sample: sample.preemptions),
        # What preempted requests find of their own is no reuse of a prefix, and cannot be told from it.
        "prefix_hit_perc": hits.perc if hits is not None and not hits.inflated else None,
        "kv_peak_perc": _peak(samples, lambda sample: sample.kv_perc),
        "running_peak": _peak(samples, lambda sample: sample.running),
        "waiting_peak": _peak(samples, lambda sample: sample.waiting),
        "gpu_mem_peak_gib": _peak(samples, lambda sample: sample.gpu_mem_used_gib),
        "gpu_power_mean_w": sum(power) / len(power) if power else None,
        # Per token generated: reading prompts is paid for by them.
        "energy_j_per_token": energy / output_tokens if energy is not None and output_tokens else None,
    }


_Field = Callable[[SampleRecord], float | None]


def _values(samples: Sequence[SampleRecord], field: _Field) -> list[float]:
    return [value for sample in samples if (value := finite(field(sample))) is not None]


def _peak(samples: Sequence[SampleRecord], field: _Field) -> float | None:
    return max(_values(samples, field), default=None)
