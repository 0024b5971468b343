"""What two sessions both measured of a workload, metric by metric."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuning.compared.estimates import Estimates, estimates
from tuning.compared.records import Side
from tuning.judgement.deciding import session_deciding
from tuning.judgement.launch_values import log_values, measured
from tuning.records import Candidate, Workload
from tuning.statistics import Estimate, difference

BESIDE = (
    "total_tok_per_s",
    "output_tok_per_s",
    "requests_per_s",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_itl_ms",
    "p99_itl_ms",
    "mean_e2el_ms",
    "p99_e2el_ms",
    "energy_j_per_token",
)
"""What is compared beside the deciding metrics, each for itself."""
_UNKNOWN = Estimate(0.0, None, 0.0)


@dataclass(frozen=True, slots=True)
class Common:
    """One metric of a workload that both measured. `candidates` have launches that count in both."""

    metric: str
    decides: bool
    a: Estimates
    b: Estimates
    candidates: tuple[tuple[Candidate, Candidate], ...]

    def effects_apart(self, one: Candidate, other: Candidate) -> Estimate:
        return difference(self.b.effects[other.index], self.a.effects[one.index])

    def levels_apart(self) -> Estimate:
        return difference(self.b.level or _UNKNOWN, self.a.level or _UNKNOWN)

    def intervals(self) -> int:
        """How many of its differences have one."""
        apart = [self.levels_apart(), *(self.effects_apart(one, other) for one, other in self.candidates)]
        return sum(each.se is not None for each in apart)


def common_metrics(
    a: Side, b: Side, one: Workload, other: Workload, candidates: Sequence[tuple[Candidate, Candidate]]
) -> list[Common]:
    """What both measured of a workload: the deciding metrics first, then the others."""
    by = a.result.metric.get(one.name), b.result.metric.get(other.name)
    deciding = list(dict.fromkeys(metric for metric in by if metric is not None))
    if one.goodput != other.goodput:  # of other bounds
        deciding = [metric for metric in deciding if metric != "goodput_per_s"]
    metrics = [*deciding, *(metric for metric in BESIDE if metric not in deciding)]
    of_a, of_b = _estimates(a, one, metrics), _estimates(b, other, metrics)
    return [
        Common(
            metric,
            metric in deciding,
            of_a[metric],
            of_b[metric],
            tuple(
                (first, second)
                for first, second in candidates
                if first.index in of_a[metric].effects and second.index in of_b[metric].effects
            ),
        )
        for metric in metrics
        if of_a[metric].level is not None and of_b[metric].level is not None
    ]


def _estimates(side: Side, workload: Workload, metrics: Sequence[str]) -> dict[str, Estimates]:
    found = measured(side.runs, [(workload.name, metric) for metric in metrics])
    fixed = session_deciding(side.session, side.plan)
    rules = fixed.rules.get(workload.name)
    candidates = rules.candidates if rules else max(1, len(side.candidates) - 1)
    decides = fixed.metric.get(workload.name)
    return {
        metric: estimates(
            log_values(found[workload.name, metric].logs(), side.blocks),
            candidates,
            fixed.prior.get(workload.name) if metric == decides else None,
        )
        for metric in metrics
    }
