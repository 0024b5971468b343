"""Throughput against latency: which configurations are not beaten in both at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tuning.records import RUN_METRICS, CandidateResult, Summary

THROUGHPUTS = ("total_tok_per_s", "output_tok_per_s", "requests_per_s", "goodput_per_s")
LATENCIES = tuple(metric for metric in RUN_METRICS if metric.endswith("_ms") and not metric.startswith("client"))
LATENCY = "p99_ttft_ms"


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """One configuration in one workload: the means over its launches with their intervals (None with one launch).

    `optimal`: no other has at least its throughput at no more than its latency, and is better in one of the two. By
    the means alone: of two that noise cannot tell apart, one may stand on the front and the other behind it.
    """

    candidate: int
    label: str
    throughput: Summary
    latency: Summary
    optimal: bool = False


def pareto(results: Iterable[CandidateResult], throughput: str, latency: str) -> tuple[ParetoPoint, ...]:
    """The configurations of one workload that have both metrics, by latency; their front marked."""
    found = []
    for each in results:
        fast, slow = each.summaries.get(throughput), each.summaries.get(latency)
        if fast is not None and slow is not None and fast.mean is not None and slow.mean is not None:
            found.append(ParetoPoint(each.candidate.index, each.candidate.label, fast, slow))
    front = optimal([(point.throughput.mean or 0.0, point.latency.mean or 0.0) for point in found])
    marked = [replace(point, optimal=at in front) for at, point in enumerate(found)]
    return tuple(sorted(marked, key=lambda point: (point.latency.mean or 0.0, -(point.throughput.mean or 0.0))))


def optimal(points: Sequence[tuple[float, float]]) -> frozenset[int]:
    """Places of the (throughput, latency) that no other beats; equals of one on the front are on it, too."""
    front: set[int] = set()
    best, at_latency = float("-inf"), float("-inf")
    for place in sorted(range(len(points)), key=lambda i: (points[i][1], -points[i][0])):
        throughput, latency = points[place]
        if throughput > best or (throughput == best and latency == at_latency):
            front.add(place)
            best, at_latency = throughput, latency
    return frozenset(front)


def default_latency(results: Sequence[CandidateResult], limits: Iterable[str] = ()) -> str | None:
    """What to draw throughput against: the first limit's latency, else p99 TTFT, else the first there is; None without
    any. `limits` are metrics."""
    measured = {metric for each in results for metric in each.summaries}
    wanted = [metric for metric in limits if metric in LATENCIES]
    return next((metric for metric in (*wanted, LATENCY, *LATENCIES) if metric in measured), None)
