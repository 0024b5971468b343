"""The looks of a whole session: after each complete block, over its deciding workloads and limits, and who leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tuning.judged import Deciding, LimitJudgement
from tuning.judgement.launch_values import Blocks
from tuning.judgement.limit_judging import LimitCase, judge_case
from tuning.verdict.look import look
from tuning.verdict.records import BASELINE, FINAL_STATES, LaunchValue, Look, Rules, Verdict

Cause = Literal["verdict", "limit"]


@dataclass(slots=True)
class Course:
    """One deciding workload. `found` is each candidate's last verdict, `block` (from 0) that of the look it is of;
    `values` are the launches that were looked at, `unused` those made after their candidate was decided."""

    looks: list[Look] = field(default_factory=list)
    found: dict[int, Verdict] = field(default_factory=dict)
    block: dict[int, int] = field(default_factory=dict)
    final: set[int] = field(default_factory=set)
    values: list[LaunchValue] = field(default_factory=list)
    unused: list[LaunchValue] = field(default_factory=list)
    without_baseline: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SessionCourse:
    """`limits` of each configuration as they stood when it was last in play; `left`: the block (from 0) after which a
    candidate leaves, and what makes it."""

    workloads: dict[str, Course]
    limits: dict[int, tuple[LimitJudgement, ...]] = field(default_factory=dict)
    left: dict[int, tuple[int, Cause]] = field(default_factory=dict)


def rules_at(rules: Rules, joined: Mapping[int, int], block: int) -> Rules:
    """Those of the look after `block`: `joined` says in which block each candidate that was added came in."""
    return replace(rules, candidates=rules.candidates + sum(each <= block for each in joined.values()))


def session_course(
    deciding: Deciding,
    values: Mapping[str, Sequence[LaunchValue]],
    cases: Sequence[LimitCase],
    candidates: Sequence[int],
    joined: Mapping[int, int],
    blocks: Blocks,
    leaving: bool,
) -> SessionCourse:
    """Look after each complete block, at most as many as the rules have.

    A candidate is looked at in the blocks that it had a part in, and in each workload until it is decided there; what
    it gives after that is left out, as in the simulations. It leaves when it is decided in all, or a limit is broken or
    implausible; but one that may still win waits for its limits. Without `leaving` every look judges everybody, and the
    newest counts: that names fewer false winners than the bars allow, never more.
    """
    course = SessionCourse({workload: Course() for workload in deciding.metric})
    any_rules = next(iter(deciding.rules.values()), None)
    if any_rules is None:
        return course
    for number, block in enumerate(blocks.complete[: any_rules.blocks], start=1):
        in_play = [
            index
            for index in candidates
            if index not in course.left and joined.get(index, 0) <= block <= blocks.last.get(index, -1)
        ]
        for workload, one in course.workloads.items():
            _look(course, one, deciding, workload, values.get(workload, ()), in_play, joined, block)
            if leaving:
                one.final |= {index for index, verdict in one.found.items() if verdict.state in FINAL_STATES}
        standing: dict[int, list[LimitJudgement]] = {index: [] for index in (BASELINE, *in_play)}
        for case in cases:
            rules = rules_at(deciding.rules.get(case.workload, any_rules), joined, block)
            for index, limit in judge_case(case, blocks.complete[:number], rules, tuple(standing)).items():
                standing[index].append(limit)
        course.limits |= {index: tuple(limits) for index, limits in standing.items()}
        for index in in_play if leaving else ():
            cause = _leaves(index, course)
            if cause is not None:
                course.left[index] = block, cause
    return course


def _look(
    course: SessionCourse,
    one: Course,
    deciding: Deciding,
    workload: str,
    values: Sequence[LaunchValue],
    in_play: Sequence[int],
    joined: Mapping[int, int],
    block: int,
) -> None:
    decided = one.final | course.left.keys()
    made = [value for value in values if value.block == block]
    one.values += [value for value in made if value.configuration not in decided]
    one.unused += [value for value in made if value.configuration in decided]
    if not any(value.configuration == BASELINE for value in made):
        one.without_baseline.append(block)
        return
    rules = rules_at(deciding.rules[workload], joined, block)
    playing = [index for index in in_play if index not in one.final]
    seen = look(one.values, rules, playing, deciding.prior.get(workload))
    one.looks.append(seen)
    for index, verdict in seen.verdicts.items():
        one.found[index] = verdict
        one.block[index] = block


def _leaves(index: int, course: SessionCourse) -> Cause | None:
    states = [limit.verdict.state for limit in course.limits[index] if limit.verdict is not None]
    if "broken" in states or "implausible" in states:
        return "limit"
    if any(index not in one.final for one in course.workloads.values()):
        return None
    found = {one.found[index].state for one in course.workloads.values()}
    may_win = "better" in found and "worse" not in found
    return None if may_win and "undecided" in states else "verdict"
