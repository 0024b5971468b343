"""Numbers as a person reads them: the same in a report, a table of the screen and a plain line."""

import math

from tuning.records import RUN_METRICS, Effect, Summary

ABSENT = "–"
_MINUS = "−"
_STATS = {"mean": "mean", "median": "median", "p90": "p90", "p99": "p99"}
_TITLES = {
    "total_tok_per_s": "total tok/s",
    "output_tok_per_s": "output tok/s",
    "requests_per_s": "requests/s",
    "error_rate": "error rate",
    "goodput_per_s": "goodput requests/s",
    "preemptions": "preemptions",
    "prefix_hit_perc": "prefix hits %",
    "kv_peak_perc": "KV peak %",
    "running_peak": "running, peak",
    "waiting_peak": "waiting, peak",
    "gpu_mem_peak_gib": "GPU memory peak GiB",
    "gpu_power_mean_w": "GPU power W",
    "energy_j_per_token": "energy J/output token",
    "client_cpu_perc": "client CPU %",
    "client_lag_p99_ms": "client lag p99 ms",
    "duration_s": "duration s",
    "requests_completed": "requests completed",
    "requests_failed": "requests failed",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
}


def metric_title(metric: str) -> str:
    """`p99_ttft_ms` → `p99 TTFT ms`; a name that is no metric comes back as it is."""
    if metric in _TITLES or metric not in RUN_METRICS:
        return _TITLES.get(metric, metric)
    stat, what, unit = metric.split("_")
    return f"{_STATS[stat]} {what.upper()} {unit}"


def figure(value: float | None) -> str:
    """Four digits or so: `27,245`, `640.2`, `7.75`, `0.0123`; `–` for None and what is not finite."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size = abs(value)
    if (value == int(value) and size < 1e15) or size >= 1000:
        text = f"{value:,.0f}"
    elif size >= 100:
        text = f"{value:.1f}"
    elif size >= 1:
        text = f"{value:.2f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", _MINUS, 1) if text.startswith("-") else text


def percent(ratio: float | None) -> str:
    """A ratio - 1 with its sign, in percent: `+1.4 %`; `0.0 %` has none."""
    return ABSENT if ratio is None else f"{_signed(100 * ratio)} %"


def size_percent(share: float | None) -> str:
    """A share or a noise without sign: `0.43 %`, `3.6 %`, `12 %`, `1,035 %`."""
    if share is None or not math.isfinite(share):
        return ABSENT
    value = 100 * share
    decimals = 0 if abs(value) >= 9.95 else 1 if abs(value) >= 0.995 else 2
    text = f"{value:,.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if decimals else text} %"


def summary_text(summary: Summary | None) -> str:
    """`27,245 [26,900, 27,590]`, the interval only where two launches or more give one."""
    if summary is None or summary.mean is None:
        return ABSENT
    if summary.low is None or summary.high is None:
        return figure(summary.mean)
    return f"{figure(summary.mean)} [{figure(summary.low)}, {figure(summary.high)}]"


def effect_text(effect: Effect | None) -> str:
    """`+1.4 % [−0.3, +3.1]`, in percent of the baseline."""
    if effect is None or effect.effect is None:
        return ABSENT
    if effect.low is None or effect.high is None:
        return percent(effect.effect)
    return f"{percent(effect.effect)} [{_signed(100 * effect.low)}, {_signed(100 * effect.high)}]"


def duration_text(seconds: float | None) -> str:
    """`45 s`, `12 min`, `2 h 05 min`; a clock that was set back gives `0 s`."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    if seconds < 90:
        return f"{max(0, seconds):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def _signed(value: float) -> str:
    """One decimal below 10 in size, none above: +0.3, −12."""
    text = f"{value:+.1f}" if abs(value) < 9.95 else f"{value:+,.0f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", _MINUS)
