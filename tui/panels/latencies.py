"""Latencies of a window as rows: percentiles from the histograms of what came in, where their buckets resolve them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.samples.window import Window
from engine.scrape.histograms import Percentile, mean, percentile
from tui.format import ABSENT
from tui.panels.row import ACCENT, MUTED, PLAIN, STRONG, Piece, Row, figure, fit, last
from tui.panels.spark import blocks

NAMES = {
    "ttft": "TTFT",
    "itl": "ITL",
    "tpot": "TPOT",
    "queue": "queue",
    "prefill": "prefill",
    "decode": "decode",
    "e2el": "end to end",
}
FULL = tuple(NAMES)
COMPACT = ("ttft", "itl", "e2el", "queue")
PERCENTILES = (50.0, 90.0, 99.0)

NAME_W, VALUE_W = 11, 10
MEAN_FROM, HISTORY_FROM = 61, 72  # widths from which a table has those columns
COUNT_W = 10
HISTORY_MIN = 8

MARGIN = 1.1  # how far beyond 1 s or below it a figure must go to change its unit


@dataclass(frozen=True, slots=True)
class Latency:
    """One latency over a window, seconds. `percentiles` are p50, p90, p99."""

    percentiles: tuple[Percentile | None, ...] = (None, None, None)
    mean: float | None = None
    count: float | None = None


@dataclass(slots=True)
class Units:
    """The unit in which each figure was shown last, so that one near 1 s does not jump between ms and s."""

    in_seconds: dict[object, bool] = field(default_factory=dict)

    def choose(self, figure_of: object, seconds: float) -> bool:
        """Whether this figure is to be shown in seconds."""
        before = self.in_seconds.get(figure_of)
        edge = 1.0 if before is None else MARGIN if not before else 1 / MARGIN
        chosen = seconds >= edge
        self.in_seconds[figure_of] = chosen
        return chosen


def read_latencies(window: Window, names: Sequence[str]) -> dict[str, Latency]:
    """Those of `metric_names.LATENCIES` that are asked for, over the window."""
    found = {}
    for name in names:
        histogram = window.histogram(name)
        if histogram is None or histogram.count <= 0:
            found[name] = Latency(count=None if histogram is None else 0.0)
            continue
        found[name] = Latency(
            tuple(percentile(histogram, perc) for perc in PERCENTILES), mean(histogram), histogram.count
        )
    return found


def latency_text(seconds: float | None, in_seconds: bool | None = None) -> str:
    """`171 ms`, `1.16 s `: three significant digits, the units one below the other. A negative one is `<` its size."""
    if seconds is None:
        return f"{ABSENT}   "
    if seconds < 0:
        return bound_text("<", -seconds)
    if in_seconds is None:
        in_seconds = seconds >= 1.0
    shown = seconds if in_seconds else 1000 * seconds
    decimals = 2 if abs(shown) < 9.995 else 1 if abs(shown) < 99.95 else 0
    text = f"{shown:,.{decimals}f}" if abs(shown) < 1e6 else f"{shown:.1e}"
    return f"{text} {'s ' if in_seconds else 'ms'}"


def bound_text(sign: str, seconds: float | None) -> str:
    """`<10 ms`, `>2,560 s `: what a histogram's outermost buckets leave open. Bounds are round numbers."""
    if seconds is None:
        return f"{ABSENT}   "
    in_seconds = seconds >= 1.0
    shown = seconds if in_seconds else 1000 * seconds
    text = f"{shown:,.0f}" if shown == round(shown) and shown < 1e6 else f"{shown:.3g}"
    return f"{sign}{text} {'s ' if in_seconds else 'ms'}"


def percentile_text(found: Percentile | None, units: Units, figure_of: object) -> str:
    """A percentile, or what can be said of it: below the first bound, above the last finite one."""
    if found is None:
        return f"{ABSENT}   "
    if found.resolved and found.value is not None:
        return latency_text(found.value, units.choose(figure_of, found.value))
    return bound_text("<", found.upper) if found.upper is not None else bound_text(">", found.lower)


def latency_rows(
    found: Mapping[str, Latency],
    names: Sequence[str],
    window_s: float,
    answers: bool,
    width: int,
    units: Units,
    histories: Mapping[str, Sequence[float | None]] | None = None,
) -> list[Row]:
    """A heading and a row for each name. Wide tables have the mean, the count and a history of the p50."""
    with_mean = width >= MEAN_FROM
    room = history_width(width)
    heads = ["p50", "p90", "p99", *(["mean"] if with_mean else [])]
    head = "".join(f"{name}   ".rjust(VALUE_W) for name in heads) + ("count".rjust(COUNT_W) if with_mean else "")
    heading = f"{last(window_s):<{NAME_W}}"
    rows: list[Row] = [fit(((heading, ACCENT), (head, MUTED), ("   p50 over time" if room else "", MUTED)), width)]
    for name in names:
        one = found.get(name, Latency()) if answers else Latency()
        texts = [percentile_text(each, units, (name, at)) for at, each in enumerate(one.percentiles)]
        pieces: list[Piece] = [(f"{NAMES[name]:<{NAME_W}}", MUTED)]
        pieces += [(text.rjust(VALUE_W), STRONG if at == 0 else PLAIN) for at, text in enumerate(texts)]
        if with_mean:
            value = one.mean
            text = latency_text(value, units.choose((name, "mean"), value) if value is not None else None)
            pieces += [(text.rjust(VALUE_W), PLAIN), (figure(one.count, COUNT_W), MUTED)]
        if room:
            history = list((histories or {}).get(name, ()))[-room:]
            stretch = max(1, room // max(1, len(history)))
            line = "".join(column * stretch for column in blocks(history)[0])
            pieces += [("   ", PLAIN), (line.rjust(room), ACCENT)]
        rows.append(fit(tuple(pieces), width))
    return rows


def history_width(width: int) -> int:
    """Columns of history in a table of that width, 0 where there is no room for one."""
    left = width - NAME_W - 4 * VALUE_W - COUNT_W - 3
    return left if width >= HISTORY_FROM and left >= HISTORY_MIN else 0
