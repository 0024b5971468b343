"""The engines of a server with data parallelism, a row each: which is full, and whether the load is spread evenly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.numbers import finite
from engine.samples.sample_record import kept_engines
from engine.samples.window import Window
from store.records import SampleRecord
from tui.panels.reading import last_answer
from tui.panels.row import ERROR, GOOD, MUTED, PLAIN, STRONG, WARNING, Row, decimals_of, figure, fit, outside, title

RATE_S = 5.0
UNEVEN, ONE_SIDED = 1.25, 2.0  # the busiest engine's requests over the mean
FEW = 4.0  # a mean of requests below which unevenness means nothing
MOST_ENGINES = 16


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine now. `kv_perc` is 0 to 100, `tokens_per_s` those it generates, a mean of RATE_S."""

    name: str
    running: float | None
    waiting: float | None
    kv_perc: float | None
    tokens_per_s: float | None

    @property
    def load(self) -> float | None:
        """Requests that it has."""
        return None if self.running is None else self.running + (self.waiting or 0.0)


def read_engines(window: Window, answers: bool) -> list[EngineRow]:
    """A row an engine, in the server's order; empty where there is one only."""
    known = _by_name(last_answer(window))
    if len(known) < 2:
        return []
    now = _by_name(window.newest) if answers else {}
    return [_engine(window, name, now.get(name, {})) for name in list(known)[:MOST_ENGINES]]


def _engine(window: Window, name: str, now: Mapping[str, Any]) -> EngineRow:
    def tokens(sample: SampleRecord) -> float | None:
        return finite(_by_name(sample).get(name, {}).get("generation_tokens"))

    return EngineRow(
        name,
        finite(now.get("running")),
        finite(now.get("waiting")),
        finite(now.get("kv_perc")),
        window.rate(tokens, RATE_S) if now else None,
    )


def _by_name(sample: SampleRecord | None) -> dict[str, Mapping[str, Any]]:
    return {str(one.get("engine", at)): one for at, one in enumerate(kept_engines(sample))}


def spread(engines: list[EngineRow]) -> tuple[str, str]:
    """How evenly the requests are spread, in a word with its glyph, and what kind of word it is."""
    loads = [one.load for one in engines if one.load is not None]
    if len(loads) < 2:
        return "–", PLAIN
    average = sum(loads) / len(loads)
    if average < FEW:
        return "○ little to do", PLAIN
    most = max(loads) / average
    if most < UNEVEN:
        return "≈ even", GOOD
    return ("≠ uneven", WARNING) if most < ONE_SIDED else ("! one-sided", ERROR)


def engine_rows(window: Window, answers: bool, width: int) -> list[Row]:
    """The panel, `width` cells wide; no rows where there is one engine."""
    engines = read_engines(window, answers)
    if not engines:
        return []
    word, kind = spread(engines)
    fullest = max((one.kv_perc for one in engines if one.kv_perc is not None), default=None)
    name_w = 9
    heads = f"{'engine':<{name_w}}{'running':>8}{'waiting':>8}{'KV':>6}{'tok/s':>8}"
    rows: list[Row] = [title("engines", width, note=f"{len(engines)}  {word}"), ((heads, MUTED),)]
    if kind:
        rows[0] = tuple((text, kind if word in text else was) for text, was in rows[0])
    for one in engines:
        full = fullest is not None and one.kv_perc == fullest and fullest > 0
        rows.append(
            (
                (f"{'▲ ' if full else '  '}{outside(one.name, name_w - 2)}", STRONG if full else PLAIN),
                (figure(one.running, 8), PLAIN),
                (figure(one.waiting, 8), WARNING if one.waiting else PLAIN),
                (figure(one.kv_perc, 6, 0, "%"), STRONG if full else PLAIN),
                (figure(one.tokens_per_s, 8, decimals_of(one.tokens_per_s)), PLAIN),
            )
        )
    return [fit(row, width) for row in rows]
