"""Metrics of the contract as a person reads them: short names, numbers with units, effects with intervals."""

import math

from tui.format import ABSENT
from tuning.records import PLAN_METRICS_HIGHER_IS_BETTER, RUN_METRICS, Effect

PLUS, MINUS = "+", "−"

_NAMES = {
    "total_tok_per_s": "total tok/s",
    "output_tok_per_s": "output tok/s",
    "requests_per_s": "requests/s",
    "goodput_per_s": "goodput/s",
    "error_rate": "errors",
    "preemptions": "preemptions",
    "prefix_hit_perc": "prefix hits",
    "kv_peak_perc": "KV peak",
    "running_peak": "running peak",
    "waiting_peak": "waiting peak",
    "gpu_mem_peak_gib": "GPU mem peak",
    "gpu_power_mean_w": "GPU power",
    "energy_j_per_token": "energy/token",
    "client_cpu_perc": "client CPU",
    "client_lag_p99_ms": "client lag p99",
    "duration_s": "duration",
    "requests_completed": "completed",
    "requests_failed": "failed",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
}
_LATENCIES = {"ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "e2el": "end to end"}
_UNITS = {"_ms": " ms", "_perc": " %", "_gib": " GiB", "_w": " W", "_j_per_token": " J", "duration_s": " s"}


def metric_name(metric: str) -> str:
    """`p99_ttft_ms` → `p99 TTFT`; a metric that is not ours keeps its name."""
    if metric in _NAMES:
        return _NAMES[metric]
    parts = metric.split("_")
    if len(parts) == 3 and parts[1] in _LATENCIES:
        return f"{parts[0]} {_LATENCIES[parts[1]]}"
    return metric


def metric_unit(metric: str) -> str:
    """The unit as it follows a number, with its space, or nothing."""
    return next((unit for ending, unit in _UNITS.items() if metric.endswith(ending)), "")


def number(value: float | None) -> str:
    """Three or more significant digits, thousands separated: `27,245`, `184`, `9.81`, `0.0123`."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def metric_value(metric: str, value: float | None) -> str:
    """A value of this metric with its unit."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if metric == "error_rate":
        return f"{100 * value:.1f} %"
    return number(value) + metric_unit(metric)


def ratio(value: float | None, *, unit: bool = True) -> str:
    """A ratio − 1 as a signed percentage: `+1.4 %`, `−29 %`."""
    if value is None or not math.isfinite(value):
        return ABSENT
    percent = 100 * value
    digits = f"{abs(percent):.0f}" if abs(percent) >= 9.95 else f"{abs(percent):.1f}"
    sign = MINUS if percent < 0 and float(digits) else PLUS
    return f"{sign}{digits}{' %' if unit else ''}"


def effect_text(effect: Effect | None) -> str:
    """`+1.4 % [−0.3, +3.1]`, without the interval where there is none yet."""
    if effect is None or effect.effect is None:
        return ""
    if effect.low is None or effect.high is None:
        return ratio(effect.effect)
    return f"{ratio(effect.effect)} [{ratio(effect.low, unit=False)}, {ratio(effect.high, unit=False)}]"


def higher_is_better(metric: str) -> bool:
    return metric in PLAN_METRICS_HIGHER_IS_BETTER


def next_metric(metric: str, step: int = 1) -> str:
    """The metric after this one in the contract's order, round and round."""
    at = RUN_METRICS.index(metric) if metric in RUN_METRICS else -1
    return RUN_METRICS[(at + step) % len(RUN_METRICS)]


def money(amount: float | None) -> str:
    """Dollars; nothing where no price is known."""
    return "" if amount is None or not math.isfinite(amount) else f"${amount:,.2f}"
