"""From a session's runs to its table: a summary and an effect for every candidate, workload and metric."""

from collections.abc import Mapping, Sequence

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.budget import SECONDS_PER_HOUR
from tuning.deciding import deciding_metrics
from tuning.judging import judge
from tuning.limited_by import sentences
from tuning.plan_json import candidates_from_json, plan_from_json
from tuning.progress import Progress, seconds_used
from tuning.records import (
    RUN_METRICS,
    Candidate,
    CandidateResult,
    Effect,
    Plan,
    SessionResult,
    Summary,
)
from tuning.schedule import BASELINE
from tuning.statistics import level_interval, mean, mean_log, paired_ratio

Cells = dict[tuple[int, int], list[float]]  # (block, slot) → what the measured runs of that launch gave


def session_result(
    session: SessionRecord, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord], now: str
) -> SessionResult:
    """What the session says so far. `now` is UTC in ISO 8601.

    The runs of a cell (block, candidate, slot) are averaged first, so that every number stands for one launch; only
    measured runs that were accepted count. Effects compare the means of the logs within a block.
    """
    plan = plan_from_json(session.plan)
    progress = Progress(session, plan, launches, runs, now)
    # The keeper's own count knows of its time between launches, the launches of the time since it last noted it.
    used = max(seconds_used(launches, now), float(session.raw.get("seconds_used", 0.0)))
    price = plan.budget.gpu_price_per_hour
    return SessionResult(
        session_id=session.id or 0,
        name=session.name,
        state=session.state,
        metric=deciding_metrics(plan),
        results=tuple(
            result
            for workload in plan.workloads
            for result in _workload_results(session, plan, workload.name, launches, runs)
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
        judgement=judge(session, plan, launches, runs),
    )


def _workload_results(
    session: SessionRecord,
    plan: Plan,
    workload: str,
    launches: Sequence[LaunchRecord],
    runs: Sequence[RunRecord],
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
    logs = {metric: _logs_by_block(cells) for metric, cells in measured.get(BASELINE, {}).items()}
    return [
        CandidateResult(
            candidate=candidate,
            workload=workload,
            summaries=_summaries(measured.get(candidate.index, {}), confidence),
            effects={}
            if candidate.index == BASELINE
            else _effects(measured.get(candidate.index, {}), logs, confidence),
            failures=_failures(session, candidate, launches),
            rejected=rejected.get(candidate.index, 0),
            limited_by=sentences(counted.get(candidate.index, ())),
        )
        for candidate in candidates_from_json(session.candidates)
    ]


def _by_metric(runs: Sequence[RunRecord]) -> dict[str, Cells]:
    """Metric → what the runs of each launch measured, in the order of RUN_METRICS; metrics that no run has are left
    out. One pass: there may be ten thousand runs, each with some forty metrics."""
    found: dict[str, Cells] = {}
    for run in runs:
        cell = run.block, run.slot
        for metric, value in run.metrics.items():
            if value is not None:
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


def _effects(
    measured: Mapping[str, Cells], baseline: Mapping[str, Mapping[int, Sequence[float]]], confidence: float
) -> dict[str, Effect]:
    """Metric → its effect, where `baseline` has the logs of each block; left out where no block has both, None inside
    where a value has no logarithm."""
    effects: dict[str, Effect] = {}
    for metric, cells in measured.items():
        ratio = paired_ratio(_logs_by_block(cells), baseline.get(metric, {}), confidence)
        if ratio is not None:
            effects[metric] = Effect(blocks=ratio.n, effect=ratio.mean, low=ratio.low, high=ratio.high)
    return effects


def _logs_by_block(cells: Cells) -> dict[int, list[float]]:
    blocks: dict[int, list[float]] = {}
    for (block, _), values in cells.items():
        log = mean_log(values)
        if log is not None:
            blocks.setdefault(block, []).append(log)
    return blocks


def _failures(session: SessionRecord, candidate: Candidate, launches: Sequence[LaunchRecord]) -> tuple[str, ...]:
    """Why launches of the candidate failed, and why it left; each reason once."""
    reasons = [
        launch.failure or launch.failure_class or "failed"
        for launch in launches
        if launch.candidate == candidate.index and launch.state == "failed"
    ]
    why = session.raw.get("out", {}).get(str(candidate.index))
    if why and not any(reason in why for reason in reasons):
        reasons.append(why)
    return tuple(dict.fromkeys(reasons))
