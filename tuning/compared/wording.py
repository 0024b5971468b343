"""What is said around two sessions in plain words: what differs between their machines, and what cannot be told."""

from collections.abc import Sequence
from datetime import UTC, datetime

from engine.text import clean
from store.clock import parse_utc
from tuning.compared.matching import default_differences, model_note
from tuning.compared.records import CandidateComparison, Side, WorkloadComparison
from tuning.counting import counted, span_text
from tuning.environment_change import COMPARED, differences

LIVE = ("waiting", "running", "paused")


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
    if lone := _decided_in_one(rows):
        notes.append(
            f"{', '.join(lone)}: decided in one of the two, and yet no difference between them is shown. That one "
            "session was sure and the other not is no difference of effects."
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


def _decided_in_one(rows: Sequence[CandidateComparison]) -> list[str]:
    """The candidates that are better, or worse, in one session alone, though their effects are not told apart: "the
    difference between significant and not significant is not itself statistically significant" (A. Gelman & H. Stern,
    The American Statistician 60, 2006, 328-331)."""
    sure = ("better", "worse")
    return list(
        dict.fromkeys(
            clean(each.label, 40)
            for each in rows
            if each.word == "not told apart" and (each.a.verdict in sure) != (each.b.verdict in sure)
        )
    )


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
