"""From a session's runs to its table: a summary and an effect for every candidate, workload and metric."""

from collections.abc import Mapping, Sequence

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.judged import Judgement
from tuning.judgement.effects import Cells, workload_effects
from tuning.judgement.judging import judge
from tuning.judgement.launch_values import NO_MEASUREMENT
from tuning.judgement.leaving import reason_of
from tuning.limited_by import sentences
from tuning.plans.plan_json import candidates_from_json, plan_from_json
from tuning.records import (
    RUN_METRICS,
    Candidate,
    CandidateResult,
    Plan,
    SessionResult,
    Summary,
)
from tuning.scheduling.budget import SECONDS_PER_HOUR
from tuning.scheduling.progress import Progress, seconds_used
from tuning.statistics import level_interval, mean


def session_result(
    session: SessionRecord, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord], now: str
) -> SessionResult:
    """What the session says so far. `now` is UTC in ISO 8601.

    The runs of a cell (block, candidate, slot) are averaged first, so that every number stands for one launch; only
    measured runs that were accepted count. Summaries are of all launches so far; effects and verdicts of the blocks
    that are complete, as `tuning.judgement.effects` says.
    """
    plan = plan_from_json(session.plan)
    judgement = judge(session, plan, launches, runs)
    progress = Progress(session, plan, launches, runs, now)
    # The keeper's own count knows of its time between launches, the launches of the time since it last noted it.
    used = max(seconds_used(launches, now), float(session.raw.get("seconds_used", 0.0)))
    price = plan.budget.gpu_price_per_hour
    return SessionResult(
        session_id=session.id or 0,
        name=session.name,
        state=session.state,
        metric=dict(judgement.deciding.metric),
        results=tuple(
            result
            for workload in plan.workloads
            for result in _workload_results(session, plan, workload.name, launches, runs, judgement)
        ),
        blocks_done=progress.blocks_done,
        blocks_planned=plan.decide.blocks,
        launches_done=len(progress.cells & progress.settled),
        launches_planned=len(progress.cells),
        runs_done=progress.runs_made,
        runs_planned=progress.runs_planned,
        seconds_used=used,
        money_used=None if price is None else used / SECONDS_PER_HOUR * price,
        seconds_left=progress.seconds_left,
        environment=dict(session.environment),
        judgement=judgement,
    )


def _workload_results(
    session: SessionRecord,
    plan: Plan,
    workload: str,
    launches: Sequence[LaunchRecord],
    runs: Sequence[RunRecord],
    judgement: Judgement,
) -> list[CandidateResult]:
    confidence = 1 - plan.decide.error
    counted: dict[int, list[RunRecord]] = {}
    rejected: dict[int, int] = {}
    for run in runs:
        if run.workload == workload and run.kind == "measured" and run.state == "done":
            counted.setdefault(run.candidate, []).append(run)
        elif run.workload == workload and run.state == "rejected":
            rejected[run.candidate] = rejected.get(run.candidate, 0) + 1
    measured = {index: _by_metric(of) for index, of in counted.items()}
    candidates = candidates_from_json(session.candidates)
    effects = workload_effects(measured, [each.index for each in candidates], workload, judgement)
    return [
        CandidateResult(
            candidate=candidate,
            workload=workload,
            summaries=_summaries(measured.get(candidate.index, {}), confidence),
            effects=effects.get(candidate.index, {}),
            failures=_failures(session, candidate, launches),
            rejected=rejected.get(candidate.index, 0),
            limited_by=sentences(counted.get(candidate.index, ())),
        )
        for candidate in candidates
    ]


def _by_metric(runs: Sequence[RunRecord]) -> dict[str, dict[tuple[int, int], list[float]]]:
    """Metric → what the runs of each launch measured, in the order of RUN_METRICS; metrics that no run has are left
    out. One pass: there may be ten thousand runs, each with some forty metrics."""
    found: dict[str, dict[tuple[int, int], list[float]]] = {}
    for run in runs:
        cell = run.block, run.slot
        for metric, value in run.metrics.items():
            if value is not None and -NO_MEASUREMENT < value < NO_MEASUREMENT:
                found.setdefault(metric, {}).setdefault(cell, []).append(value)
    return {metric: found[metric] for metric in RUN_METRICS if metric in found}


def _summaries(measured: Mapping[str, Cells], confidence: float) -> dict[str, Summary]:
    """Metric → its summary."""
    summaries: dict[str, Summary] = {}
    for metric, cells in measured.items():
        interval = level_interval([mean(values) for values in cells.values()], confidence)
        summaries[metric] = Summary(
            n=interval.n,
            runs=sum(map(len, cells.values())),
            mean=interval.mean,
            sd=interval.sd,
            low=interval.low,
            high=interval.high,
        )
    return summaries


def _failures(session: SessionRecord, candidate: Candidate, launches: Sequence[LaunchRecord]) -> tuple[str, ...]:
    """Why launches of the candidate failed, and why it left; each reason once."""
    reasons = [
        launch.failure or launch.failure_class or "failed"
        for launch in launches
        if launch.candidate == candidate.index and launch.state == "failed"
    ]
    why = session.raw.get("out", {}).get(str(candidate.index))
    if why and reason_of(why) != "judged" and not any(reason in why for reason in reasons):
        reasons.append(why)
    return tuple(dict.fromkeys(reasons))
