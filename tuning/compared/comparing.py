"""Two sessions held against each other: what they have in common, and how far it lies apart.

The two are independent of each other, so a difference of two effects has the variances of both and Satterthwaite's
degrees of freedom (tuning.statistics.difference), and that of two levels is Welch's. All deciding differences together
hold at 1 − error: each at 1 − error/comparisons (Bonferroni), whatever ties them together, as the two defaults do.
"""

import math
from collections.abc import Sequence

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.compared.common import Common, common_metrics
from tuning.compared.estimates import Estimates
from tuning.compared.matching import (
    candidate_pairs,
    default_differences,
    model_trouble,
    unmeasured_lines,
    workload_label,
    workload_notes,
    workload_pairs,
)
from tuning.compared.records import (
    BaselineComparison,
    CandidateComparison,
    Change,
    Letter,
    Level,
    MetricComparison,
    Own,
    SessionComparison,
    Side,
    Summary,
    Word,
    WorkloadComparison,
)
from tuning.compared.sentence import sentence_of
from tuning.compared.wording import environment_lines, notes_on
from tuning.judged import WorkloadJudgement
from tuning.judgement.launch_values import session_blocks
from tuning.judgement.verdict_words import verdict_text
from tuning.plans.plan_json import candidates_from_json, plan_from_json
from tuning.records import Candidate, Workload
from tuning.results import session_result
from tuning.statistics import Estimate, bounds
from tuning.verdict.student import ratio


def side_of(session: SessionRecord, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord], now: str) -> Side:
    """One of the two, from its rows; `now` is UTC in ISO 8601. KeyError, TypeError or AttributeError for a plan of
    another form."""
    plan = plan_from_json(session.plan)
    return Side(
        session=session,
        plan=plan,
        candidates=tuple(candidates_from_json(session.candidates)),
        runs=tuple(runs),
        result=session_result(session, launches, runs, now),
        blocks=session_blocks(session, plan, launches, runs),
    )


def compare(a: Side, b: Side) -> SessionComparison:
    """What can be said of two sessions together. Two models, or two loads, are not compared; what differs around them
    is told all the same. ValueError for one session given twice."""
    if a.session.id == b.session.id:
        raise ValueError("a session agrees with itself, which says nothing")
    error = min(a.plan.decide.error, b.plan.decide.error)
    margin = min(a.plan.decide.smallest_effect, b.plan.decide.smallest_effect)
    trouble = model_trouble(a, b)
    pairs, refused = ([], [trouble]) if trouble else workload_pairs(a, b)
    candidates, only_a, only_b = candidate_pairs(a, b)
    found = [(one, other, common_metrics(a, b, one, other, candidates)) for one, other in pairs]
    refused += [
        f"workload {workload_label(one, other)}: no metric was measured in complete blocks of both"
        for one, other, metrics in found
        if not metrics
    ]
    comparisons = sum(each.intervals() for *_, metrics in found for each in metrics if each.decides)
    confidence = 1 - error / max(comparisons, 1)
    workloads = tuple(
        WorkloadComparison(
            workload_label(one, other),
            one.name,
            other.name,
            tuple(_metric(each, (a, one), (b, other), confidence, error, margin) for each in metrics),
            workload_notes(one, other),
        )
        for one, other, metrics in found
        if metrics
    )
    deciding = [each for *_, metrics in found for each in metrics if each.decides]
    set_aside = (sum(len(each.a.set_aside) for each in deciding), sum(len(each.b.set_aside) for each in deciding))
    return SessionComparison(
        a=_summary("A", a),
        b=_summary("B", b),
        sentence=sentence_of(workloads, refused, margin),
        environment=environment_lines(a, b),
        defaults=tuple(default_differences(a, b)),
        workloads=workloads,
        refused=tuple(refused),
        only_a=tuple(only_a),
        only_b=tuple(only_b),
        unmeasured=tuple(unmeasured_lines(a, b, candidates)) if workloads else (),
        notes=notes_on(a, b, workloads, set_aside),
        error=error,
        confidence=confidence,
        comparisons=comparisons,
        margin=margin,
    )


def _metric(
    common: Common,
    a: tuple[Side, Workload],
    b: tuple[Side, Workload],
    confidence: float,
    error: float,
    margin: float,
) -> MetricComparison:
    own = 1 - error
    sure = confidence if common.decides else own

    def word(apart: Estimate) -> Word | None:
        return _word(bounds(apart, sure), margin) if common.decides else None

    candidates = []
    for one, other in common.candidates:
        apart = common.effects_apart(one, other)
        candidates.append(
            CandidateComparison(
                label=one.label,
                settings=one.settings,
                a=_own(common.a, one, a, own, common.metric),
                b=_own(common.b, other, b, own, common.metric),
                difference=_change(apart, sure),
                word=word(apart),
            )
        )
    levels = common.levels_apart()
    baseline = BaselineComparison(_level(common.a, own), _level(common.b, own), _change(levels, sure), word(levels))
    return MetricComparison(common.metric, common.decides, baseline, tuple(candidates))


def _word(found: tuple[float, float] | None, margin: float) -> Word:
    """Agreement goes first: a difference that is sure and within the margin is too small to matter."""
    if found is None:
        return "says nothing"
    low, high = found
    if -math.log1p(margin) <= low and high <= math.log1p(margin):
        return "agrees"
    return "not told apart" if low <= 0 <= high else "differs"


def _own(found: Estimates, candidate: Candidate, side: tuple[Side, Workload], confidence: float, metric: str) -> Own:
    effect, launches = _change(found.effects[candidate.index], confidence), found.launches[candidate.index]
    judged = _judged(side[0], side[1].name)
    if judged is None or judged.metric != metric or candidate.index not in judged.candidates:
        return Own(candidate.index, effect, launches)
    one = judged.candidates[candidate.index]
    return Own(candidate.index, effect, launches, one.verdict, verdict_text(one, judged.rules, judged.blocks))


def _judged(side: Side, workload: str) -> WorkloadJudgement | None:
    judgement = side.result.judgement
    return None if judgement is None else judgement.workloads.get(workload)


def _level(found: Estimates, confidence: float) -> Level:
    assert found.level is not None
    interval = bounds(found.level, confidence)
    low, high = (None, None) if interval is None else map(_exp, interval)
    return Level(_exp(found.level.value), low, high, found.level_launches, found.blocks)


def _change(apart: Estimate, confidence: float) -> Change:
    interval = bounds(apart, confidence)
    low, high = (None, None) if interval is None else map(ratio, interval)
    return Change(ratio(apart.value), low, high) if None not in (low, high) else Change(ratio(apart.value))


def _exp(log: float) -> float | None:
    try:
        return math.exp(log)
    except OverflowError:
        return None


def _summary(letter: Letter, side: Side) -> Summary:
    session, result, judgement = side.session, side.result, side.result.judgement
    return Summary(
        letter=letter,
        id=session.id or 0,
        name=session.name,
        state=session.state,
        model=side.plan.model,
        began=session.started_at or session.created_at,
        ended=session.finished_at,
        blocks=result.blocks_done,
        blocks_planned=result.blocks_planned,
        sentence=judgement.sentence or None if judgement is not None else None,
    )
