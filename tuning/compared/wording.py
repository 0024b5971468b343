"""What is said of two sessions in plain words: the sentence, what differs around them, and what it cannot say."""

from collections.abc import Sequence
from datetime import UTC, datetime

from engine.text import clean
from store.clock import parse_utc
from tuning.compared.matching import default_differences, model_note
from tuning.compared.records import Change, Side, Word, WorkloadComparison
from tuning.environment_change import COMPARED, differences
from tuning.figures import effect_text, metric_title, percent
from tuning.imported.words import counted, span_text
from tuning.records import Effect, Workload

LIVE = ("waiting", "running", "paused")
_MOST_NAMED = 3


def workload_label(one: Workload, other: Workload) -> str:
    """Its name, and B's where that is another."""
    return clean(one.name if one.name == other.name else f"{one.name} (in B {other.name})", 120)


def change_text(change: Change) -> str:
    """`+1.4 % [−0.3, +3.1]`."""
    return effect_text(Effect(0, change.change, change.low, change.high))


def sentence_of(workloads: Sequence[WorkloadComparison], refused: Sequence[str], margin: float) -> str:
    """Both sessions in one or two sentences: the effects, then the defaults themselves."""
    if not workloads:
        return f"Not compared: {'; '.join(refused)}."
    several = sum(sum(metric.decides for metric in workload.metrics) for workload in workloads) > 1
    rows = [
        (workload, metric, each)
        for workload in workloads
        for metric in workload.metrics
        if metric.decides
        for each in metric.candidates
    ]
    parts = []
    if not rows:
        parts.append("No candidate was measured in both.")
    else:
        differ = [
            f"{clean(each.label, 40)}{f' in {workload.label} by {metric_title(metric.metric)}' if several else ''} "
            f"({percent(each.a.effect.change)} in A, {percent(each.b.effect.change)} in B)"
            for workload, metric, each in rows
            if each.word == "differs"
        ]
        words = [each.word for *_, each in rows]
        found = [f"{len(differ)} differ{'s' if len(differ) == 1 else ''}: {_named(differ)}"] if differ else []
        phrases: tuple[tuple[Word, str, str], ...] = (
            ("agrees", f"agrees within {_share(margin)}", f"agree within {_share(margin)}"),
            ("not told apart", "is not told apart", "are not told apart"),
            ("says nothing", "has too few launches to say", "have too few launches to say"),
        )
        for word, singular, plural in phrases:
            if number := words.count(word):
                found.append(f"{number} {singular if number == 1 else plural}")
        parts.append(f"Of {counted(len(rows), 'effect')} measured in both, {'; '.join(found)}.")
    for workload in workloads:
        for metric in workload.metrics:
            if metric.decides and metric.baseline.word == "differs":
                where = f" in {workload.label}" if several else ""
                change = change_text(metric.baseline.difference)
                parts.append(
                    f"The default's own {metric_title(metric.metric)}{where}: {change} from A to B, time and machine "
                    "included."
                )
    return " ".join(parts)


def _named(differ: Sequence[str]) -> str:
    more = len(differ) - _MOST_NAMED
    return ", ".join(differ[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _share(margin: float) -> str:
    return f"{100 * margin:g} %"


def environment_lines(a: Side, b: Side) -> tuple[str, ...]:
    """What differs between the machines, and what of it was not recorded in one of the two."""
    one, other = a.session.environment, b.session.environment
    lines = differences(one, other, "A {before}, B {now}")
    named = {**COMPARED, "model_hash": "what the model's files hold"}
    unknown = [name for key, name in named.items() if (one.get(key) is None) != (other.get(key) is None)]
    if unknown:
        lines.append(f"recorded in one of the two only: {', '.join(unknown)}")
    for letter, side in (("A", a), ("B", b)):
        earlier = side.session.raw.get("earlier_environments")
        if isinstance(earlier, list) and earlier:
            lines.append(
                f"{letter} was begun on another machine and goes on elsewhere; only its last one is shown here"
            )
    return tuple(lines)


def notes_on(a: Side, b: Side, workloads: Sequence[WorkloadComparison], set_aside: tuple[int, int]) -> tuple[str, ...]:
    """What the comparison can and cannot say."""
    notes = [_time_note(a, b)]
    if workloads:
        notes[0] += (
            " The levels of the two defaults hold whatever else was not the same: a change of the machine, of its load "
            "or its temperature cannot be told from one of the software."
        )
    rows = [each for workload in workloads for metric in workload.metrics for each in metric.candidates]
    if rows:
        notes.append(
            "An effect is against the default of its own session, block by block: what slowed everything on the day "
            "does not touch it. All differences of effects share the two defaults: where they all lean one way, it is "
            "a default that changed."
        )
    if any({each.a.verdict, each.b.verdict} & {"better", "worse"} for each in rows):
        notes.append(
            "An effect that made its candidate leave early, or that was picked as the largest, lies too far from 0 on "
            "average: a repeat shows less of it without anything having changed."
        )
    if rows and default_differences(a, b):
        notes.append(
            "The two defaults are not the same server (above), so the effects are against different ones: a difference "
            "may be that of the defaults."
        )
    if (note := model_note(a, b)) is not None and workloads:
        notes.append(f"{note}.")
    for letter, side in (("A", a), ("B", b)):
        if side.session.state in LIVE:
            blocks = counted(side.result.blocks_done, "complete block")
            notes.append(f"{letter} is {side.session.state}: this is as of {blocks}.")
    if any(set_aside):
        counts = f"{set_aside[0]} in A, {set_aside[1]} in B"
        notes.append(f"Launches set aside as outliers, as the sessions' own reports do: {counts}.")
    return tuple(notes)


def _time_note(a: Side, b: Side) -> str:
    began_a, began_b = (parse_utc(side.session.started_at or side.session.created_at) for side in (a, b))
    end_a, end_b = (_end(side) for side in (a, b))
    if end_a is not None and end_b is not None and began_a <= end_b and began_b <= end_a:
        return "The sessions ran at the same time and may have disturbed each other."
    apart = abs((began_b - began_a).total_seconds())
    order = "after" if began_b >= began_a else "before"
    return f"The sessions were at different times: B began {span_text(apart)} {order} A."


def _end(side: Side) -> datetime | None:
    """None where nobody noted it."""
    if side.session.state in LIVE:
        return datetime.max.replace(tzinfo=UTC)
    return None if side.session.finished_at is None else parse_utc(side.session.finished_at)
