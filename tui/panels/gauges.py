"""The Monitor's gauges: a line each with the value now, its history, and what belongs to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.numbers import finite
from engine.samples.sample_record import requests_finished
from engine.text import clean
from tui.format import ABSENT
from tui.monitor.subject import Subject
from tui.panels.reading import a_second
from tui.panels.row import (
    ACCENT,
    ERROR,
    GOOD,
    MUTED,
    PLAIN,
    STRONG,
    WARNING,
    Row,
    brief,
    figure,
    fit,
    per_second,
)
from tui.panels.spark import blocks

LABEL_W, VALUE_W, NOTE_W = 10, 11, 27
NOTED_W, DRAWN_W = 64, 34  # narrower, first the note goes, then the history


@dataclass(frozen=True, slots=True)
class Reading:
    """One gauge. Its history reaches from 0 to `top`, or to its own largest value without one."""

    name: str  # of the history in Watched
    label: str
    colour: str
    value: str
    note: str = ""
    top: float | None = None


def history_width(width: int) -> int:
    """Columns of history on a line of `width` cells; 0 where there is no room for one."""
    if width < DRAWN_W:
        return 0
    return max(1, width - LABEL_W - VALUE_W - 2 - (NOTE_W + 2 if width >= NOTED_W else 0))


def readings(subject: Subject) -> tuple[Reading, ...]:
    """All gauges in the order of their importance. A value of another time than now is none."""
    watched, answers = subject.watched, subject.answers
    newest = watched.window.newest if watched is not None and answers else None
    seqs = subject.max_seqs

    def count(value: float | None) -> str:
        return figure(value if answers else None, VALUE_W)

    def per_s(name: str) -> str:
        now = watched.rate(name) if watched is not None and answers else None
        return ABSENT if now is None else per_second(now, VALUE_W)

    return (
        Reading(
            "kv",
            "KV cache",
            WARNING,
            figure(newest.kv_perc if newest else None, VALUE_W, 1, " %"),
            _size(subject),
            100.0,
        ),
        Reading(
            "running",
            "running",
            GOOD,
            count(newest.running if newest else None),
            f"of {brief(seqs)} at most" if seqs is not None else "",
            seqs,
        ),
        Reading("waiting", "waiting", ERROR, count(newest.waiting if newest else None), _reasons(subject)),
        Reading("output", "output", ACCENT, per_s("output"), _prefix_hits(subject)),
        Reading("prompt", "prompt", ACCENT, per_s("prompt"), _preempted(subject)),
        Reading("requests", "requests", ACCENT, per_s("requests"), _finished(subject)),
    )


def gauge_rows(reading: Reading, history: Sequence[float | None], width: int, height: int = 1) -> list[Row]:
    """A gauge of `height` lines, the words in its last."""
    if width < DRAWN_W:  # the words alone
        value = reading.value.strip()
        label = reading.label[: max(1, width - len(value) - 1)]
        return [fit(((label, MUTED), (value.rjust(max(0, min(VALUE_W + LABEL_W, width) - len(label))), STRONG)), width)]
    drawn = history_width(width)
    lines = blocks(history[-drawn:], height, reading.top) if drawn else [""] * height
    rows: list[Row] = []
    for at, line in enumerate(lines):
        last = at == len(lines) - 1
        row = (
            (f"{reading.label if last else '':<{LABEL_W}}", MUTED),
            (f"{reading.value if last else '':>{VALUE_W}}", STRONG),
            ("  ", PLAIN),
            (line.rjust(drawn), reading.colour),
            (f"  {reading.note}" if last and width >= NOTED_W else "", PLAIN),
        )
        rows.append(fit(row, width))
    return rows


def _size(subject: Subject) -> str:
    size = subject.kv_tokens
    return f"of {brief(size)} tokens{' each' if subject.engines > 1 else ''}" if size is not None else ""


def _reasons(subject: Subject) -> str:
    newest = subject.watched.window.newest if subject.watched is not None and subject.answers else None
    reasons = newest.raw.get("waiting_by_reason") if newest is not None else None
    if not isinstance(reasons, dict):
        return ""
    known = [(why, n) for why, given in reasons.items() if (n := finite(given)) is not None]
    said = [f"{clean(str(why), 12)} {brief(n)}" for why, n in known[:2]]
    if len(" · ".join(said)) > NOTE_W:  # a figure that is cut is another figure
        said = [one for one, (_, n) in zip(said, known, strict=False) if n][:1]
    return " · ".join(said)


def _prefix_hits(subject: Subject) -> str:
    watched = subject.watched
    hits = None
    if watched is not None and subject.answers:
        found = watched.window.increase(lambda sample: sample.prefix_hits)
        asked = watched.window.increase(lambda sample: sample.prefix_queries)
        hits = min(100.0, 100 * found / asked) if found is not None and asked else None
    return f"prefix hits {figure(hits, 9, 1, ' %')}"


def _preempted(subject: Subject) -> str:
    """In all, and how many a minute over the window."""
    watched = subject.watched
    window = watched.window if watched is not None else None
    newest = window.newest if window is not None and subject.answers else None
    said = f"preempted{figure(newest.preemptions if newest else None, 9)}"
    if window is None or newest is None:
        return said
    lately = 60 * (a_second(window.increase(lambda sample: sample.preemptions), window) or 0.0)
    if lately >= 1000:
        return f"{said} +{brief(lately / 1000, 0, 'k/min', 8)}"
    return f"{said} +{brief(lately, 0 if lately >= 1 else 1, '/min')}" if lately else said


def _finished(subject: Subject) -> str:
    """In all; of a server that ended too, as that is what it did."""
    watched = subject.watched
    known = watched.answered if watched is not None and (subject.answers or subject.ended) else None
    return f"finished {figure(requests_finished(known) if known else None, 10)}"
