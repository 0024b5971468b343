"""Histories over the window as block charts, in what room the panels leave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from engine.numbers import finite
from engine.samples.sample_record import requests_finished
from tui.panels.latencies import latency_text
from tui.panels.row import ACCENT, MUTED, STRONG, WARNING, Row, brief, decimals_of, fit, last
from tui.panels.slots import Make, Slots, gauge, growth_rate, percentile_of
from tui.panels.spark import blocks

LEAST_HEIGHT, GOOD_HEIGHT, MOST_HEIGHT = 3, 4, 8  # with the heading


@dataclass(frozen=True, slots=True)
class History:
    """One quantity over time. `say` gives a value with its unit, `top` is what a full column stands for (None: the
    largest value). Histories with the same `scale` share the largest of them all."""

    label: str
    make: Make
    say: Callable[[float], str]
    top: float | None = None
    scale: str = ""
    kind: str = ACCENT


def _seconds(value: float) -> str:
    return latency_text(value).rstrip()


def _a_second(value: float) -> str:
    return brief(value, decimals_of(value), "/s")


def _a_minute(value: float) -> str:
    return brief(60 * value, decimals_of(60 * value), "/min")


def _number(value: float) -> str:
    return brief(value, decimals_of(value))


def _perc(value: float) -> str:
    return brief(value, decimals_of(value), " %")


# The gauges beside have short histories of the last four already.
HISTORIES = (
    History("TTFT p99", percentile_of("ttft", 99.0), _seconds, scale="ttft"),
    History("TTFT p50", percentile_of("ttft", 50.0), _seconds, scale="ttft"),
    History("ITL p99", percentile_of("itl", 99.0), _seconds),
    History("preempted", growth_rate(lambda sample: finite(sample.preemptions)), _a_minute, kind=WARNING),
    History("queue p90", percentile_of("queue", 90.0), _seconds),
    History("output", growth_rate(lambda sample: finite(sample.generation_tokens)), _a_second),
    History("waiting", gauge(lambda sample: finite(sample.waiting)), _number, kind=WARNING),
    History("running", gauge(lambda sample: finite(sample.running)), _number),
    History("KV cache", gauge(lambda sample: finite(sample.kv_perc)), _perc, top=100.0),
    History("ended", growth_rate(requests_finished), _a_second),
    History("prompt", growth_rate(lambda sample: finite(sample.prompt_tokens)), _a_second),
)


def how_many(height: int) -> int:
    """How many charts one below the other suit that height; a single one may be lower than it should be."""
    return max(height // GOOD_HEIGHT, 1 if height >= LEAST_HEIGHT else 0)


def history_rows(
    slots: Slots, window_s: float, answers: bool, width: int, height: int, which: Sequence[History] = HISTORIES
) -> list[Row]:
    """The first of `which` one below the other, as many as suit the height."""
    shown = which[: how_many(height)]
    if not shown:
        return []
    values = [slots.values(one.label, one.make) for one in shown]
    rows: list[Row] = []
    for at, (one, line) in enumerate(zip(shown, values, strict=True)):
        alike = [own for other, own in zip(shown, values, strict=True) if one.scale and other.scale == one.scale]
        top = one.top if one.top is not None else _largest(alike or [line])
        each = min(MOST_HEIGHT, (height + at) // len(shown))  # what is left over goes to the last ones
        rows += chart(one, line, top, window_s, answers, width, each)
    return rows


def _largest(lines: Sequence[Sequence[float | None]]) -> float:
    return max((value for line in lines for value in line if value is not None), default=0.0)


def chart(
    history: History,
    values: Sequence[float | None],
    top: float,
    window_s: float,
    answers: bool,
    width: int,
    height: int,
) -> list[Row]:
    """A heading (what, now, what the height stands for) and the chart below it, right-aligned to now."""
    now = values[-1] if answers and values else None
    shown = history.say(now) if now is not None else "–"
    head: Row = (
        (f"{history.label:<10}", MUTED),
        (f"{shown:>11}", STRONG),
        (f"  {_span(history, values, top):<15}", MUTED),
        (last(window_s) if width > 50 else "", MUTED),
    )
    stretch = max(1, width // max(1, len(values)))
    columns = [_column(value, height - 1, top) for value in values]
    lines = ["".join(column[row] * stretch for column in columns)[-width:] for row in range(height - 1)]
    return [fit(head, width), *(((line.rjust(width), history.kind),) for line in lines)]


def _span(history: History, values: Sequence[float | None], top: float) -> str:
    """What the chart's height stands for; without a height, whether anything was measured."""
    if top > 0:
        return f"0 to {history.say(top)}"
    return "–" if all(value is None for value in values) else "0 throughout"


@lru_cache(maxsize=8192)
def _column(value: float | None, height: int, top: float) -> tuple[str, ...]:
    """One column. From one tick to the next all but the newest are what they were."""
    return tuple(blocks([value], height, top or None))
