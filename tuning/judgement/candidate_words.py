"""The word and the line that a candidate gets in a workload, from its looks, its limits and why it left."""

import math

from tuning.figures import effect_text, figure
from tuning.judged import CandidateJudgement, LimitJudgement, Word
from tuning.judgement.leaving import reason_of
from tuning.judgement.limit_judging import limit_title
from tuning.judgement.session_looks import Course, SessionCourse
from tuning.records import Effect
from tuning.verdict.decisions import POWER
from tuning.verdict.records import Range, Rules, Verdict

MANY_BLOCKS = 40  # beyond it a number of blocks is no advice


def judged_candidate(
    index: int, course: SessionCourse, one: Course, rules: Rules, limits: tuple[LimitJudgement, ...], out: str | None
) -> CandidateJudgement:
    """`out` is the session's own line for why the candidate left, None while it is in it; `limits` are all of its.

    What did not start cannot win; a limit that is broken comes before the metric; what was skipped or never tried was
    dropped unless it had been decided.
    """
    found = one.found.get(index)
    block = one.block[index] + 1 if index in one.final else None
    if block is None and index in course.left:
        block = course.left[index][0] + 1
    word, why = _word(found, limits, one, rules, out, "; launched no more" if index in course.left else "")
    return CandidateJudgement(index, word, found, limits, block, why)


def _word(
    found: Verdict | None,
    limits: tuple[LimitJudgement, ...],
    one: Course,
    rules: Rules,
    out: str | None,
    no_more: str,
) -> tuple[Word, str]:
    reason = None if out is None else reason_of(out)
    state = "undecided" if found is None else found.state
    if state == "worse":
        return "worse", ""
    if out is not None and reason == "did not start":
        return "failed", out
    broken = [limit for limit in limits if limit.verdict is not None and limit.verdict.state == "broken"]
    unlikely = [limit for limit in limits if limit.verdict is not None and limit.verdict.state == "implausible"]
    if broken:
        return "infeasible", " and ".join(
            f"{limit_title(each.limit, each.workload)} is broken: {level_text(each)}" for each in broken
        )
    if unlikely:
        first = unlikely[0]
        line = f"that it keeps {limit_title(first.limit, first.workload)} is implausible: {level_text(first)}"
        return ("infeasible" if state == "better" else "undecided"), line + no_more
    if state == "better":
        return "better", open_limits(limits)
    if state == "equivalent":
        also = None if found is None else found.also
        return "equivalent", f"surely {also}, by too little to matter" if also else ""
    if out is not None and reason in ("skipped", "not tried"):
        return "dropped", out
    if state == "implausible":
        return "undecided", f"a gain of {100 * rules.smallest_effect:g} % or more is implausible{no_more}"
    return "undecided", "" if found is None else _undecided(found, one, rules)


def open_limits(limits: tuple[LimitJudgement, ...]) -> str:
    """What is not known yet of the limits of a candidate that is better; "" where all hold."""
    lines = []
    for each in limits:
        title = limit_title(each.limit, each.workload)
        if each.verdict is None:
            lines.append(f"{title} was not measured")
        elif each.verdict.state == "undecided":
            lines.append(f"{title} is undecided: {level_text(each)}")
    return "; ".join(lines)


def level_text(limit: LimitJudgement) -> str:
    """`489.1 [450.3, 531.2], 2.2 % below the limit`."""
    verdict = limit.verdict
    if verdict is None:
        return "not measured"
    text = figure(verdict.level)
    if verdict.low is not None and verdict.high is not None:
        text += f" [{figure(verdict.low)}, {figure(verdict.high)}]"
    return text if limit.near is None else f"{text}, {limit.near}"


def found_text(found: Verdict | Range | None) -> str:
    """`+3.1 % [+1.2, +5.0]`."""
    return effect_text(None if found is None else Effect(0, found.effect, found.low, found.high))


def blocks_in_all(found: Verdict, blocks: int, bar: float, rules: Rules) -> int | None:
    """About how many blocks a session must have to decide the candidate with 80 % chance; None where it cannot be said.

    As `decisions.more_blocks`, with the half width h of the interval found: the smallest N with
    |d| > h·(1 + 0.84/bar)·√(n/N), or the margin's room in its place. The bar rises little with more looks, and
    more degrees of freedom, which are left out, lower t.
    """
    if found.effect is None or found.low is None or found.high is None or min(found.low, found.effect) <= -1:
        return None
    d, half = math.log1p(found.effect), math.log1p(found.effect) - math.log1p(found.low)
    room = max(abs(d), math.log1p(rules.margin) - abs(d))
    if room <= 0 or half <= 0:
        return None
    needed = blocks * (half * (1 + POWER / bar) / room) ** 2
    return max(math.ceil(needed), blocks + 1) if needed <= MANY_BLOCKS else None


def _undecided(found: Verdict, one: Course, rules: Rules) -> str:
    if found.suspect:
        return "of two launches one is an outlier, and nobody can tell which: it waits for one more block"
    last = one.looks[-1]
    if last.bar is None or last.blocks < rules.blocks:
        return ""
    blocks = blocks_in_all(found, last.blocks, last.bar, rules)
    return "" if blocks is None else f"a session of about {blocks} blocks would decide it"
