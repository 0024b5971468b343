"""Charts of sessions and of runs: the only module that knows plotext.

plotext 6 aborts the process on NaN, raises on infinities and takes memory in proportion to how far a value lies beyond
a fixed axis, so nothing reaches it that has not been through `broken_runs` and `clamped`. It keeps one global figure;
every chart here is a figure of its own, made where `_figure` says, and must be built on the UI thread.
"""

import ctypes
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from engine import numbers

MARKERS = ("●", "▲", "■", "◆", "○", "△", "□", "◇")
LARGEST = 1e15  # beyond this a float is no measurement; plotext raises from about 1e308 on

_FAILURES = (ValueError, OverflowError, MemoryError, ctypes.ArgumentError, IndexError, OSError, ImportError)
"""What plotext raises where it cannot draw."""

Point = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """Points in the order in which they are joined. `line` joins them in braille dots, `marks` draws each point."""

    points: tuple[Point, ...]
    label: str = ""
    marker: str = MARKERS[0]
    line: bool = True
    marks: bool = True
    style: str = ""  # a Textual or Rich colour for the marks


@dataclass(frozen=True, slots=True)
class Axes:
    """`x_ticks` are (position, label) pairs, for categories too; limits None are taken from the points."""

    x_label: str = ""
    y_label: str = ""
    x_ticks: tuple[tuple[float, str], ...] = ()
    y_limits: tuple[float, float] | None = None


def finite(value: object) -> float | None:
    """The number, or None for anything that cannot stand on an axis (None, text, NaN, infinities, absurd sizes)."""
    found = numbers.finite(value)
    return found if found is not None and abs(found) <= LARGEST else None


def broken_runs(points: Iterable[Point]) -> list[list[tuple[float, float]]]:
    """The points as unbroken stretches: a point with a missing or non-finite coordinate ends the stretch before it."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        fx, fy = finite(x), finite(y)
        if fx is None or fy is None:
            if runs[-1]:
                runs.append([])
        else:
            runs[-1].append((fx, fy))
    return [run for run in runs if run]


def thinned(run: Sequence[tuple[float, float]], at_most: int) -> list[tuple[float, float]]:
    """No more than `at_most` of the points, evenly chosen, the first and the last among them."""
    if len(run) <= max(at_most, 2):
        return list(run)
    last = len(run) - 1
    return [run[round(i * last / (at_most - 1))] for i in range(at_most)]


def clamped(value: float, limits: tuple[float, float]) -> float:
    """The value moved onto the nearer end of the axis where it lies beyond it."""
    return min(max(value, limits[0]), limits[1])


def limits_of(values: Iterable[float], margin: float = 0.06) -> tuple[float, float]:
    """Limits that hold all values with a margin on both sides and never coincide (plotext prints a warning then)."""
    kept = list(values)
    if not kept:
        return 0.0, 1.0
    low, high = min(kept), max(kept)
    span = (high - low) or abs(high) or 1.0
    return low - margin * span, high + margin * span


def round_top(value: float) -> float:
    """The least of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten that holds `value`; 1 for what is not above 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if value <= step * power * (1 + 1e-9))


TIME_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def time_ticks(limits: tuple[float, float], at_most: int, offset: float = 0.0) -> list[float]:
    """Whole moments between the limits, in seconds: at most so many, on multiples of a step that a clock has.

    `offset` moves the multiples: the seconds of the limits' zero after midnight, for a clock.
    """
    low, high = limits
    span = high - low
    if span <= 0 or at_most < 1:
        return []
    step = next((step for step in TIME_STEPS if span / step <= at_most), 86400 * math.ceil(span / at_most / 86400))
    first = math.ceil((low + offset) / step)
    last = math.floor((high + offset) / step)
    return [step * at - offset for at in range(first, last + 1)]


def tick_label(value: float) -> str:
    """A number short enough to stand beside an axis: four significant digits, thousands separated, no exponents below
    a billion."""
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 9 or size < -4:
        return f"{value:.2e}"
    return f"{value:,.{max(0, 3 - size)}f}"


def draw(series: Sequence[Series], axes: Axes, width: int, height: int) -> Text:
    """The chart in `width` x `height` cells, or one line of text where there is nothing to draw or no room.

    Without colours and without a painted background, so it stands on any theme; only the marks take a series' style.
    """
    if width < 24 or height < 6:
        return Text("no room for a chart here; make the terminal larger")
    stretches = [(one, [thinned(run, 2 * width) for run in broken_runs(one.points)]) for one in series]
    flat = [point for _, runs in stretches for run in runs for point in run]
    if not flat:
        return Text("nothing to draw: no measured value yet")
    x_limits = limits_of([x for x, _ in flat] + [position for position, _ in axes.x_ticks])
    y_limits = axes.y_limits or limits_of(y for _, y in flat)
    try:
        plain = _build(stretches, axes, x_limits, y_limits, width, height)
    except _FAILURES as error:
        return Text(f"this chart cannot be drawn: {error}")
    text = Text(plain, no_wrap=True)
    for one in series:
        if one.style:
            text.highlight_words([one.marker], style=one.style)
    return text


def _columns(run: Sequence[tuple[float, float]], y_limits: tuple[float, float]) -> tuple[list[float], list[float]]:
    return [x for x, _ in run], [clamped(y, y_limits) for _, y in run]


def load() -> None:
    """Import plotext before the first chart needs it."""
    import plotext  # noqa: F401


def _figure() -> Any:
    """A figure of its own. plotext has no public constructor; its class is reached through the global one.

    Sizes are clamped to the terminal as it was at import unless the limit is lifted first.
    """
    import plotext  # 0.2 s, and only charts need it

    plotext.terminal.limit(False, False)
    return type(plotext.figure)(parent=plotext.terminal)


def _build(
    stretches: Sequence[tuple[Series, list[list[tuple[float, float]]]]],
    axes: Axes,
    x_limits: tuple[float, float],
    y_limits: tuple[float, float],
    width: int,
    height: int,
) -> str:
    figure = _figure()
    figure.plot_size(width, height)
    figure.canvas("default")
    figure.legend(False)  # it would lie over the data
    figure.ruler("x").lim(*x_limits)
    figure.ruler("y").lim(*y_limits)
    rows = max(2, min(6, (height - 3) // 3))
    y_ticks = [y_limits[0] + (y_limits[1] - y_limits[0]) * i / (rows - 1) for i in range(rows)]
    figure.ruler("y").ticks(y_ticks, [tick_label(value) for value in y_ticks])
    if axes.x_ticks:
        figure.ruler("x").ticks([position for position, _ in axes.x_ticks], [label for _, label in axes.x_ticks])
    # marks after all lines, so that no line hides one
    for one, runs in stretches:
        for run in runs:
            if one.line and len(run) > 1:
                figure.draw(figure.signal(*_columns(run, y_limits), marker="braille").lines())
    for one, runs in stretches:
        for run in runs:
            if one.marks:
                figure.draw(figure.signal(*_columns(run, y_limits), marker=one.marker))
    if axes.x_label:
        figure.label(axes.x_label, "x")
    if axes.y_label:
        figure.title(axes.y_label)
    return str(figure.build().string(colorless=True)).rstrip("\n")
