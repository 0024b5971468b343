"""What decides a session: fixed when it starts, kept with it, and read back by everything that judges."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from store.records import SessionRecord
from tuning.judged import Deciding, Limit
from tuning.plans.limits import LimitError, read_limit
from tuning.records import PLAN_METRICS_HIGHER_IS_BETTER, Candidate, Plan
from tuning.scheduling.schedule import BASELINE
from tuning.verdict.boundary import MOST_BLOCKS, bars
from tuning.verdict.records import Prior, Rules

KEY = "deciding"  # of SessionRecord.raw
ADDED = "added"  # of SessionRecord.raw: candidate added by a person → the block, from 0, that it joined


def deciding_of(
    plan: Plan,
    candidates: Sequence[Candidate],
    prior: Mapping[str, Prior] | None = None,
    prior_source: str | None = None,
) -> Deciding:
    """What a session of `plan` with these candidates (the baseline among them or not) will decide by.

    `prior`: what an A/A session found of the noise, by workload. The bars take up to a second to work out. Limits that
    cannot be read, in plans of earlier versions, are left out.
    """
    fixed = _fixed(plan, sum(each.index != BASELINE for each in candidates))
    return replace(
        fixed,
        bars={workload: bars(rules) for workload, rules in fixed.rules.items()},
        prior=dict(prior or {}),
        prior_source=prior_source if prior else None,
    )


def deciding_metrics(plan: Plan) -> dict[str, str]:
    """Workload → the metric it decides by; a workload that the plan's table leaves out decides nothing."""
    metric = plan.decide.metric
    if isinstance(metric, dict):
        return dict(metric)
    return {workload.name: metric for workload in plan.workloads}


def deciding_json(deciding: Deciding) -> dict[str, Any]:
    """In JSON's own types, for `raw["deciding"]`."""
    return {
        "metric": dict(deciding.metric),
        "rules": {workload: asdict(rules) for workload, rules in deciding.rules.items()},
        "bars": {workload: list(bars) for workload, bars in deciding.bars.items()},
        "limits": [asdict(limit) for limit in deciding.limits],
        "prior": {workload: asdict(prior) for workload, prior in deciding.prior.items()},
        "prior_source": deciding.prior_source,
        "calibration": deciding.calibration,
    }


def deciding_from_json(document: Mapping[str, Any]) -> Deciding:
    """What `deciding_json` wrote; KeyError, TypeError or ValueError for anything else."""
    return Deciding(
        metric=dict(document["metric"]),
        rules={workload: Rules(**rules) for workload, rules in document["rules"].items()},
        bars={workload: tuple(bars) for workload, bars in document["bars"].items()},
        limits=tuple(Limit(**limit) for limit in document["limits"]),
        prior={workload: Prior(**prior) for workload, prior in document["prior"].items()},
        prior_source=document["prior_source"],
        calibration=document["calibration"],
    )


def session_deciding(session: SessionRecord, plan: Plan) -> Deciding:
    """What was fixed when the session started; of one made before that was kept, what its plan says."""
    kept = session.raw.get(KEY)
    if kept is not None:
        return deciding_from_json(kept)
    added = session.raw.get(ADDED, {})
    return _fixed(plan, sum(str(each["index"]) not in added for each in session.candidates) - 1)


def _fixed(plan: Plan, candidates: int) -> Deciding:
    metric = deciding_metrics(plan)
    calibration = plan.calibrate
    decide = plan.decide
    rules = {
        workload: Rules(
            candidates=max(candidates, 1),
            blocks=min(decide.blocks, MOST_BLOCKS),
            workloads=len(metric),
            error=decide.error,
            margin=decide.smallest_effect,
            smallest_effect=decide.smallest_effect,
            larger_is_better=name in PLAN_METRICS_HIGHER_IS_BETTER,
            decide_all=calibration,
        )
        for workload, name in metric.items()
    }
    return Deciding(metric=metric, rules=rules, limits=_limits(plan), calibration=calibration)


def _limits(plan: Plan) -> tuple[Limit, ...]:
    found: list[Limit] = []
    for text in plan.decide.limits:
        try:
            found.append(read_limit(text))
        except LimitError:
            continue
    return tuple(found)
