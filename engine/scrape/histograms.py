"""Percentiles and means of what happened between two scrapes of one histogram.

A histogram only says how many values lay under each bound. Within a bucket we interpolate linearly, as Prometheus'
histogram_quantile does; below the first bound (10 ms for vLLM's inter-token latency, 300 ms for its queue time) and
above the last finite one there is nothing to interpolate between, and we say so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.records import Histogram


@dataclass(frozen=True, slots=True)
class Percentile:
    """`value` where the buckets resolve it. Else it lies below `upper` (the first bound) or above `lower` (the last).

    In the histogram's own unit, seconds for latencies.
    """

    value: float | None
    resolved: bool
    lower: float | None = None
    upper: float | None = None


def between(before: Histogram | None, after: Histogram | None) -> Histogram | None:
    """What came in between two scrapes; all of `after` without a `before`.

    Bounds at which nothing changes may have been left out of either (engine.samples.sample_record): the count at such a
    bound is that of the bound before it. None where it cannot be said: no `after`, or counts that went down (the server
    started anew).
    """
    if after is None or before is None:
        return after
    bounds = sorted({bound for bound, _ in before.buckets} | {bound for bound, _ in after.buckets})
    buckets = tuple(
        (bound, new - old) for bound, new, old in zip(bounds, _at(bounds, after), _at(bounds, before), strict=True)
    )
    count, total = after.count - before.count, after.sum - before.sum
    if count < 0 or any(not 0 <= number < math.inf for _, number in buckets) or not math.isfinite(count + total):
        return None
    return Histogram(buckets, total, count)


def _at(bounds: Sequence[float], histogram: Histogram) -> list[float]:
    """The cumulative counts at each of the ascending `bounds`."""
    counts: list[float] = []
    kept, cumulative = iter(histogram.buckets), 0.0
    upcoming = next(kept, None)
    for bound in bounds:
        while upcoming is not None and upcoming[0] <= bound:
            cumulative, upcoming = upcoming[1], next(kept, None)
        counts.append(cumulative)
    return counts


def mean(histogram: Histogram | None) -> float | None:
    """Mean of the values, exact (sum / count); None where there were none."""
    if histogram is None or histogram.count <= 0:
        return None
    value = histogram.sum / histogram.count
    return value if math.isfinite(value) else None


def percentile(histogram: Histogram | None, perc: float) -> Percentile | None:
    """The `perc`-th percentile (0 to 100) of the values; None where there were none."""
    if histogram is None or not histogram.buckets or histogram.buckets[-1][1] <= 0:
        return None
    rank = perc / 100 * histogram.buckets[-1][1]
    below, under = 0.0, None
    for bound, cumulative in histogram.buckets:
        if cumulative >= rank and cumulative > below:
            if math.isinf(bound):
                return Percentile(None, False, lower=under)
            if under is None:
                return Percentile(None, False, upper=bound)
            value = under + (bound - under) * max(rank - below, 0.0) / (cumulative - below)
            if not math.isfinite(value):  # bounds that no clock gave
                return Percentile(None, False, lower=under)
            return Percentile(value, True, under, bound)
        below, under = cumulative, bound
    return None
