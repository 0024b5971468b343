"""What must be said beside the verdicts, a line each: launches set aside, unequal noise, drift, what does not count."""

from collections.abc import Mapping, Sequence

from tuning.figures import figure, metric_title, percent, size_percent
from tuning.judged import Deciding, LimitJudgement
from tuning.judgement.candidate_words import found_text, level_text
from tuning.judgement.launch_values import Blocks, Measured
from tuning.judgement.limit_judging import limit_title, limit_workloads
from tuning.judgement.session_looks import Course, SessionCourse
from tuning.records import Plan
from tuning.verdict.boundary import MOST_BLOCKS, bars
from tuning.verdict.records import BASELINE, Drift, LaunchValue, Look, Trend
from tuning.verdict.student import ratio

SEEN = 0.01  # p below which drift is said
BARS_APART = 0.02  # what bars are right to, and more than rounding
DEFAULT = "the default"


def session_notes(
    plan: Plan,
    deciding: Deciding,
    course: SessionCourse,
    measured: Mapping[tuple[str, str], Measured],
    blocks: Blocks,
    names: Mapping[int, str],
    joined: Mapping[int, int],
    over: bool,
    leaving: bool,
) -> tuple[str, ...]:
    """`names` are the candidates' labels; `over`: the session runs no more; `leaving`: every look of
    it decides, not the newest alone."""
    notes: list[str] = []
    several = len(deciding.metric) > 1
    for workload, one in course.workloads.items():
        head = f"{workload}: " if several else ""
        title = metric_title(deciding.metric[workload])
        notes += [head + line for line in _outliers(one, names, title)]
        notes += [head + line for line in _unequal(one.looks if leaving else one.looks[-1:], names)]
        if (moved := drift_sentence(one.looks[-1].drift if one.looks else Drift(), title)) is not None:
            notes.append(head + moved)
        if one.looks and one.looks[-1].noise.prior_used:
            notes.append(f"{head}the noise takes in what {deciding.prior_source or 'earlier launches'} found")
        notes += [head + line for line in _not_counted(one, measured.get((workload, deciding.metric[workload])), title)]
    notes += [f"{DEFAULT} itself {line}" for line in _baseline_limits(course.limits.get(BASELINE, ()))]
    notes += _added(joined, names)
    if unused := _made_after_leaving(course):
        launches = _count(unused, "launch", "launches")
        notes.append(f"{launches} made after the verdict on the candidate {_is(unused)} left out")
    if over and (unfinished := [block for block in blocks.begun if block not in blocks.complete]):
        notes.append(f"{_blocks(unfinished)} not complete, and not counted for the verdict")
    if plan.decide.blocks > MOST_BLOCKS:
        notes.append(f"only the first {MOST_BLOCKS} blocks are judged: more looks than that have no bars")
    judged = {limit.text for limit in deciding.limits if limit_workloads(limit, plan)}
    lost = [text for text in plan.decide.limits if text.strip() not in judged]
    notes += [f"the limit {text} cannot be judged, and is not" for text in lost]
    notes += _other_bars(deciding, course)
    return tuple(notes)


def drift_sentence(drift: Drift, title: str) -> str | None:
    """How the machine changed, in one sentence; None where p ≥ 0.01. `title` is that of the metric."""
    parts = []
    if drift.over is not None and drift.over.p < SEEN:
        first, last = min(drift.blocks) + 1, max(drift.blocks) + 1
        parts.append(f"{title} {_moved(drift.over)} from block {first} to block {last}")
    elif drift.blocks_p is not None and drift.blocks_p < SEEN and drift.blocks:
        low, high = min(drift.blocks.values()), max(drift.blocks.values())
        parts.append(f"{title} of the blocks lies between {percent(low)} and {percent(high)} of its mean")
    if drift.within is not None and drift.within.p < SEEN:
        parts.append(f"{'' if parts else title + ' '}{_moved(drift.within)} within a block, first launch to last")
    if not parts:
        return None
    return f"drift: {', and '.join(parts)}; effects are taken within blocks, so that it cancels"


def _moved(trend: Trend) -> str:
    word = "rose" if trend.change > 0 else "fell"
    return f"{word} by {100 * abs(trend.change):.1f} % [{percent(trend.low)}, {percent(trend.high)}]"


def _outliers(one: Course, names: Mapping[int, str], title: str) -> list[str]:
    """Of the newest look, and of those at which candidates were decided without a launch."""
    lines: dict[LaunchValue, str] = {}
    for look in one.looks:
        settled = {index for index in look.verdicts if one.block.get(index) is not None}
        of_look = [index for index in settled if one.found[index] is look.verdicts[index]]
        if not look.set_aside or not (of_look or look is one.looks[-1]):
            continue
        for value in look.set_aside:
            line = f"{_launch(value, names, title)} is far from the others and set aside"
            shown = [value.configuration] if value.configuration != BASELINE else _most_changed(one, of_look)
            for index in shown:
                if index in of_look and one.found[index].with_all is not None:
                    verdict = one.found[index]
                    line += f"; {names[index]} without it {found_text(verdict)}, with it {found_text(verdict.with_all)}"
            lines[value] = line
    suspects = [index for index, verdict in one.found.items() if verdict.suspect]
    if suspects and one.looks and len(suspects) == len(one.looks[-1].verdicts) > 1:
        return [
            *lines.values(),
            f"one of two launches of {DEFAULT} is an outlier: nothing is decided before another block",
        ]
    return [
        *lines.values(),
        *(
            f"one of two launches of {names[index]}, or of {DEFAULT}, is an outlier: it waits"
            for index in sorted(suspects)
        ),
    ]


def _most_changed(one: Course, indices: Sequence[int]) -> list[int]:
    """The candidate whose effect hangs most on a launch of the default."""

    def change(index: int) -> float:
        verdict = one.found[index]
        if verdict.effect is None or verdict.with_all is None or verdict.with_all.effect is None:
            return 0.0
        return abs(verdict.effect - verdict.with_all.effect)

    return sorted(indices, key=lambda index: (-change(index), index))[:1]


def _launch(value: LaunchValue, names: Mapping[int, str], title: str) -> str:
    level = ratio(value.value)
    reads = "" if level is None else f" ({title} {figure(level + 1)})"
    return f"block {value.block + 1}: the launch of {names[value.configuration]}{reads}"


def _unequal(looks: Sequence[Look], names: Mapping[int, str]) -> list[str]:
    """With the noise at the last look that found it."""
    seen = {index: look for look in looks for index in look.unequal}
    if not seen:
        return []
    told = []
    for index, look in sorted(seen.items()):
        own, rest = look.noise.by_configuration[index].sd, look.noise.sd
        if own is not None and rest is not None:
            told.append(
                f"{names[index]} ({size_percent(own)} a launch, {size_percent(rest)} over all, {look.blocks} blocks)"
            )
    many = "are" if len(seen) > 1 else "is"
    return [
        f"unequal noise: {', '.join(told)} {many} far noisier than the rest; the method is weakest there, so that "
        "strict bars hold at such looks, and up to 5 % of such sessions name a false winner all the same"
    ]


def _not_counted(one: Course, found: Measured | None, title: str) -> list[str]:
    lines = []
    if one.without_baseline:
        lines.append(f"{_blocks(one.without_baseline)} not counted: no launch of {DEFAULT} counts there")
    if found is not None and (runs := found.without_log()):
        lines.append(f"{_count(runs, 'run', 'runs')} without {title} above 0 {_is(runs)} not counted for the verdict")
    return lines


def _baseline_limits(limits: Sequence[LimitJudgement]) -> list[str]:
    lines = []
    for each in limits:
        state = None if each.verdict is None else each.verdict.state
        if state in ("broken", "implausible"):
            word = "breaks" if state == "broken" else "hardly keeps"
            lines.append(f"{word} {limit_title(each.limit, each.workload)}: {level_text(each)}")
    return lines


def _added(joined: Mapping[int, int], names: Mapping[int, str]) -> list[str]:
    if not joined:
        return []
    told = ", ".join(f"{names[index]} (block {block + 1})" for index, block in sorted(joined.items()))
    return [f"added while it ran: {told}; bars are higher from there on, those before it were for fewer candidates"]


def _other_bars(deciding: Deciding, course: SessionCourse) -> list[str]:
    """Where a later version of llmtune works out other bars than those kept with the session, and has used them."""
    for workload, one in course.workloads.items():
        kept = deciding.bars.get(workload)
        if kept is None or not one.looks or one.looks[-1].bar is None:
            continue
        now = bars(deciding.rules[workload])
        if len(now) != len(kept) or any(abs(a - b) > BARS_APART for a, b in zip(now, kept, strict=True)):
            return ["the bars of this version are not those the session began with: verdicts are by this version's"]
    return []


def _made_after_leaving(course: SessionCourse) -> int:
    def later(value: LaunchValue) -> bool:
        return value.configuration in course.left and value.block > course.left[value.configuration][0]

    return max((sum(map(later, one.unused)) for one in course.workloads.values()), default=0)


def _blocks(blocks: Sequence[int]) -> str:
    told = ", ".join(str(block + 1) for block in blocks)
    return f"block {told} is" if len(blocks) == 1 else f"blocks {told} are"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
