"""A/A sessions, the default measured against itself: what they are made of, and what they tell later sessions."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.text import redact_env
from store.records import SessionRecord
from tuning.environment_change import differences
from tuning.judgement.certainty import CALIBRATION_BLOCKS
from tuning.judgement.deciding import deciding_metrics
from tuning.judgement.judging import judge
from tuning.plans.plan_json import plan_from_json
from tuning.records import Decide, Plan, PlanError
from tuning.verdict.boundary import FIRST_LOOK, MOST_BLOCKS
from tuning.verdict.calibration import prior_of
from tuning.verdict.records import Prior

if TYPE_CHECKING:
    from store.reader import Reader


SUFFIX = " A/A"


def calibration(plan: Plan, blocks: int | None = None) -> Plan:
    """The A/A session of a plan: its server and workloads, no grid. Raises PlanError as `with_blocks`."""
    return replace(with_blocks(plan, blocks or CALIBRATION_BLOCKS), name=f"{plan.name}{SUFFIX}", calibrate=True)


def without_calibration(plan: Plan) -> Plan:
    """Of an A/A session's plan the one that it was made of, with the usual blocks; any other as it is."""
    if not plan.calibrate:
        return plan
    decide = replace(plan.decide, blocks=Decide().blocks)
    return replace(plan, name=plan.name.removesuffix(SUFFIX), calibrate=False, decide=decide)


def with_blocks(plan: Plan, blocks: int) -> Plan:
    """The plan with so many blocks. PlanError where no verdict can come of them."""
    if not FIRST_LOOK <= blocks <= MOST_BLOCKS:
        raise PlanError(f"a session has {FIRST_LOOK} to {MOST_BLOCKS} blocks, not {blocks}")
    return replace(plan, decide=replace(plan.decide, blocks=blocks))


def prior_noise(reader: "Reader", plan: Plan, environment: Mapping[str, Any]) -> tuple[dict[str, Prior], str | None]:
    """By workload, what the newest finished A/A session says of the noise in a session of `plan`, and which one that
    is; ({}, None) where there is none.

    Only of the same machine, model, server and workload, and for the metric that decides. An A/A session gets none:
    it is to find the noise anew.
    """
    if plan.calibrate:
        return {}, None
    for session, measured in _calibrations(reader, plan, environment):
        assert session.id is not None
        judgement = judge(session, measured, reader.launches(session.id), reader.runs(session.id))
        metrics, workloads = deciding_metrics(plan), {each.name: each for each in measured.workloads}
        found = {}
        for workload in plan.workloads:
            judged = judgement.workloads.get(workload.name)
            if judged is None or workloads[workload.name] != workload or judged.metric != metrics.get(workload.name):
                continue
            if judged.looks and (prior := prior_of(judged.looks[-1].noise)) is not None:
                found[workload.name] = prior
        if found:
            return found, f"A/A session {session.id}"
    return {}, None


def _calibrations(reader: "Reader", plan: Plan, environment: Mapping[str, Any]) -> Iterator[tuple[SessionRecord, Plan]]:
    """Finished A/A sessions that measured this server here, the newest first."""
    for session in sorted(reader.sessions(("done",)), key=lambda each: each.id or 0, reverse=True):
        if not session.plan.get("calibrate") or "earlier_environments" in session.raw:
            continue
        measured = plan_from_json(session.plan)
        same = (measured.model, measured.server) == (plan.model, plan.server)
        if (
            same
            and measured.server_env == redact_env(plan.server_env)
            and not differences(session.environment, environment)
        ):
            yield session, measured
