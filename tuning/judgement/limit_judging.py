"""Whether each configuration keeps each limit, from its launches and from what was rejected twice."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from store.records import LaunchRecord, RunRecord
from tuning.figures import figure, metric_title
from tuning.judged import Limit, LimitJudgement
from tuning.judgement.launch_values import Measured
from tuning.records import Plan
from tuning.scheduling.settling import CellKey, cell_of
from tuning.verdict.constraint import LimitVerdict, judge_limit
from tuning.verdict.records import LaunchValue, Rules

# What may be 0 has no log to be judged on: the level is then the plain mean over the launches.
PLAIN_SCALE = frozenset(
    {
        "error_rate",
        "goodput_per_s",
        "preemptions",
        "prefix_hit_perc",
        "kv_peak_perc",
        "running_peak",
        "waiting_peak",
        "client_cpu_perc",
        "client_lag_p99_ms",
        "requests_failed",
    }
)
# A run of which requests failed is rejected and made once more: what it says of these is in the rejected ones.
OF_REJECTED = frozenset({"error_rate", "requests_failed"})

Broke = Mapping[int, tuple[int, float]]  # configuration → first block, from 0, and the value that broke the limit


@dataclass(frozen=True, slots=True)
class LimitCase:
    """A limit in one workload, with what was measured for it."""

    limit: Limit
    workload: str
    found: Measured
    broke: Broke


def limit_cases(
    limits: Sequence[Limit],
    plan: Plan,
    found: Mapping[tuple[str, str], Measured],
    launches: Sequence[LaunchRecord],
    runs: Sequence[RunRecord],
) -> list[LimitCase]:
    """Each limit in each workload in which it must hold; `found` by workload and metric."""
    cases = []
    for limit in limits:
        for workload in limit_workloads(limit, plan):
            measured = found[workload, limit.metric]
            cases.append(
                LimitCase(limit, workload, measured, broken_outright(limit, workload, measured, launches, runs))
            )
    return cases


def limit_workloads(limit: Limit, plan: Plan) -> tuple[str, ...]:
    """Those in which it must hold."""
    names = tuple(workload.name for workload in plan.workloads)
    return names if limit.workload is None else tuple(name for name in names if name == limit.workload)


def keeps(limit: Limit, value: float) -> bool:
    """Whether one measured value does."""
    return value <= limit.bound if limit.sign == "<=" else value >= limit.bound if limit.sign == ">=" else value == 0


def rejected_twice(
    limit: Limit, workload: str, launches: Iterable[LaunchRecord], runs: Iterable[RunRecord]
) -> dict[CellKey, float]:
    """Cell → the value of a run that did not keep the limit twice, and was rejected for that or another reason.

    What broke the launch may have broken the run, so those of a launch that was not done say nothing.
    """
    done = {launch.id for launch in launches if launch.state == "done"}
    tries: dict[tuple[CellKey, int], list[float]] = {}
    for run in runs:
        if run.workload != workload or run.kind != "measured" or run.state != "rejected" or run.launch_id not in done:
            continue
        value = run.metrics.get(limit.metric)
        if value is not None and math.isfinite(value) and not keeps(limit, value):
            tries.setdefault((cell_of(run), run.repeat), []).append(value)
    twice: dict[CellKey, float] = {}
    for (cell, _), values in tries.items():
        if len(values) > 1:
            twice[cell] = max(min(values), twice.get(cell, 0.0))
    return twice


def broken_outright(
    limit: Limit,
    workload: str,
    found: Measured,
    launches: Iterable[LaunchRecord],
    runs: Iterable[RunRecord],
) -> Broke:
    """Who broke the limit beyond statistics, and when: `== 0` by any accepted run above 0, and it or any limit on
    failed requests by a run that was rejected twice for more of them than it allows."""
    events: dict[CellKey, float] = {}
    if limit.sign == "==":
        events = {cell: max(of) for cell, of in found.values.items() if max(of) > 0}
    if limit.metric in OF_REJECTED:
        for cell, value in rejected_twice(limit, workload, launches, runs).items():
            events[cell] = max(value, events.get(cell, 0.0))
    broke: dict[int, tuple[int, float]] = {}
    for (block, configuration, _), value in sorted(events.items()):
        broke.setdefault(configuration, (block, value))
    return broke


def judge_case(
    case: LimitCase, complete: Collection[int], rules: Rules, configurations: Collection[int]
) -> dict[int, LimitJudgement]:
    """The limit of each configuration after the blocks `complete`, as many as `rules` allow; without a verdict where
    nothing was measured."""
    limit, found, broke = case.limit, case.found, case.broke
    cells = {cell: of for cell, of in found.values.items() if cell[0] in complete}
    judged: Mapping[int, LimitVerdict]
    if limit.sign == "==":
        judged = {index: _never(index, cells) for index in {cell[1] for cell in cells}}
    else:
        judged = _levels(limit, cells, rules, len(complete), configurations)
    result: dict[int, LimitJudgement] = {}
    for index in configurations:
        verdict = judged.get(index)
        if index in broke and broke[index][0] in complete:
            value = broke[index][1]
            distance = value / limit.bound - 1 if limit.bound else None
            count = len({cell for cell in cells if cell[1] == index})
            verdict = LimitVerdict("broken", value, None, None, distance, count)
        known = verdict is not None and verdict.level is not None
        result[index] = limit_judgement(limit, case.workload, verdict if known else None)
    return result


def limit_judgement(limit: Limit, workload: str, verdict: LimitVerdict | None) -> LimitJudgement:
    """With how far a level that decides nothing is from the bound."""
    near = None
    if verdict is not None and verdict.state in ("undecided", "implausible") and verdict.distance is not None:
        side = "above" if verdict.distance > 0 else "below"
        near = f"{100 * abs(verdict.distance):.1f} % {side} the limit"
    return LimitJudgement(limit, workload, verdict, near)


def limit_title(limit: Limit, workload: str | None = None) -> str:
    """`p99 TTFT ms ≤ 500 in chat`, for a sentence."""
    sign = {"<=": "≤", ">=": "≥", "==": "="}[limit.sign]
    where = f" in {workload}" if workload is not None else ""
    return f"{metric_title(limit.metric)} {sign} {figure(limit.bound)}{where}"


def _never(index: int, cells: Mapping[CellKey, Sequence[float]]) -> LimitVerdict:
    """What has not happened in any run holds, as far as runs can say."""
    return LimitVerdict("holds", 0.0, None, None, None, len([cell for cell in cells if cell[1] == index]))


def _levels(
    limit: Limit, cells: Mapping[CellKey, Sequence[float]], rules: Rules, looks: int, configurations: Collection[int]
) -> Mapping[int, LimitVerdict]:
    plain = limit.metric in PLAIN_SCALE
    values = []
    for cell, of in sorted(cells.items()):
        used = list(of) if plain else [math.log(value) for value in of if value > 0]
        if used:
            values.append(LaunchValue(cell[0], cell[1], math.fsum(used) / len(used)))
    return judge_limit(values, limit.bound, rules, looks, configurations, limit.sign == "<=", plain)
