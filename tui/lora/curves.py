"""What a trainer tells over its steps, as rows of braille lines with a scale beside them. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tui import braille
from tui.chart import Point, finite, limits_of
from tui.format import ABSENT, number
from tui.lora.progress import Progress
from tui.panels.row import ACCENT, GOOD, MUTED, PLAIN, STRONG, Row, fit

MARGIN = 9  # cells before the lines: a number of eight, the axis
LEAST_HEIGHT = 3  # the words and two rows of dots
GOOD_HEIGHT = 6
MARK = "●"
AXIS_ROWS = 2
OF_ALL = 6
"""The mean of the training losses is over this part of the steps so far."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart; `marked` puts a mark on each of its points, so that it is told apart without colours."""

    label: str
    points: tuple[Point, ...]
    kind: str = ACCENT
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves in one unit under one title. `say` gives a value as it stands beside the axis and behind the title."""

    title: str
    curves: tuple[Curve, ...]
    say: Callable[[float], str]
    from_zero: bool = True

    @property
    def values(self) -> list[float]:
        return [y for curve in self.curves for _, y in curve.points if y is not None]


def loss_text(value: float | None) -> str:
    """A loss with three decimals, one beyond every measure in powers of ten."""
    if value is None or finite(value) is None:
        return ABSENT
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.1e}"


def rate_text(value: float | None) -> str:
    """A learning rate or a gradient: `2e-4`, `1.83e-5`, `0.404`."""
    if value is None or finite(value) is None:
        return ABSENT
    if value == 0:
        return "0"
    if 0.01 <= abs(value) < 1000:
        return f"{value:.3g}"
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def a_second(value: float) -> str:
    """Tokens a second."""
    return number(value) if abs(value) < 1e6 else f"{value:.1e}"


def gib(value: float) -> str:
    """Memory, of 2^30 bytes."""
    return f"{value:.1f}" if abs(value) < 1e5 else f"{value:.0e}"


def charts_of(progress: Progress) -> tuple[Chart, ...]:
    """Losses first; then what has a value at all."""

    def points(figure: str) -> tuple[Point, ...]:
        return tuple((float(step.step), finite(getattr(step, figure))) for step in progress.steps)

    # A step without an evaluation is no gap between two that have one.
    evaluated = tuple((x, y) for x, y in points("eval_loss") if y is not None)
    trained = tuple((x, y) for x, y in points("loss") if y is not None)
    losses = [Curve("training", trained, MUTED)]
    over = len(trained) // OF_ALL
    if over > 1:  # of small batches a single loss says little
        losses.append(Curve(f"mean of {over}", trailing_mean(trained, over)))
    losses.append(Curve("evaluation", evaluated, GOOD, True))
    found = [
        Chart("loss", tuple(losses), loss_text, False),
        Chart("learning rate", (Curve("", points("learning_rate")),), rate_text),
        Chart("tokens/s", (Curve("", points("tokens_per_s")),), a_second),
        Chart("GPU memory GiB", (Curve("", points("gpu_gib")),), gib),
        Chart("main memory GiB", (Curve("", points("host_gib")),), gib),
        Chart("gradient norm", (Curve("", points("grad_norm")),), rate_text),
    ]
    return tuple(chart for at, chart in enumerate(found) if at == 0 or chart.values)


def trailing_mean(points: Sequence[Point], over: int) -> tuple[Point, ...]:
    """At each point from the `over`th on the mean of the last so many."""
    values = [y for _, y in points if y is not None]
    sums = list(accumulate(values, initial=0.0))
    return tuple(
        (points[at - 1][0], finite((sums[at] - sums[at - over]) / over)) for at in range(over, len(values) + 1)
    )


def steps_shown(progress: Progress) -> tuple[float, float]:
    """The axis: from 0 to the last step that there is to be."""
    last = max((step.step for step in progress.steps), default=0)
    return 0.0, float(max(last, progress.planned or 0, 1))


def curve_rows(progress: Progress, width: int, height: int) -> list[Row]:
    """As many charts below each other as have room, and one axis for all of them."""
    room = height - AXIS_ROWS
    if room < LEAST_HEIGHT or width < 2 * MARGIN:
        return []
    charts = charts_of(progress)
    shown = charts[: max(1, room // GOOD_HEIGHT)]
    limits = steps_shown(progress)
    each = [room // (len(shown) + 1)] * len(shown)
    each[0] = room - sum(each[1:])  # the losses are what is looked at
    rows: list[Row] = []
    for chart, rows_of in zip(shown, each, strict=True):
        rows += chart_rows(chart, limits, width, rows_of)
    return [*rows, *axis_rows(limits, width)]


def chart_rows(chart: Chart, limits: tuple[float, float], width: int, height: int) -> list[Row]:
    """The words, and `height` − 1 rows of lines."""
    inner, rows = width - MARGIN, height - 1
    scale = _scale(chart)
    drawn: list[list[tuple[str, str]]] = [[(" ", PLAIN)] * inner for _ in range(rows)]
    for curve in chart.curves:
        for at, line in enumerate(braille.canvas(curve.points, limits, scale, inner, rows)):
            for column, dots in enumerate(line):
                below = drawn[at][column][0]
                if dots != " ":
                    both = chr(ord(dots) | ord(below)) if braille.is_dots(below) else dots
                    drawn[at][column] = (both, curve.kind)
        if curve.marked:
            for x, y in curve.points:
                if y is not None and limits[0] <= (x or 0.0) <= limits[1]:
                    at = rows - 1 - braille.place(y, scale, 4 * rows) // 4
                    drawn[at][braille.place(x or 0.0, limits, 2 * inner) // 2] = (MARK, curve.kind)
    return [_words(chart, width), *(_margin(at, rows, chart, scale) + _joined(row) for at, row in enumerate(drawn))]


def axis_rows(limits: tuple[float, float], width: int) -> list[Row]:
    """The axis of steps and its ends."""
    inner = width - MARGIN
    end = number(limits[1])
    line = f"{' ' * (MARGIN - 1)}└{'─' * inner}"
    words = f"{' ' * MARGIN}0{'step':^{max(4, inner - 1 - len(end))}}{end}"
    return [((line, MUTED),), fit(((words, MUTED),), width)]


def _words(chart: Chart, width: int) -> Row:
    """Title, and each curve's newest value."""
    pieces: list[tuple[str, str]] = [(f" {chart.title}", STRONG)]
    for curve in chart.curves:
        newest = next((y for _, y in reversed(curve.points) if y is not None), None)
        mark = f"{MARK} " if curve.marked else ""
        pieces += [
            (f"  {mark}{curve.label}{' ' if curve.label else ''}", curve.kind),
            (chart.say(newest) if newest is not None else ABSENT, STRONG),
        ]
    return fit(tuple(pieces), width)


def _margin(at: int, rows: int, chart: Chart, scale: tuple[float, float]) -> Row:
    """The scale's end beside the first row and the last; of no value none."""
    label = ""
    if chart.values:
        label = chart.say(scale[1]) if at == 0 else chart.say(scale[0]) if at == rows - 1 else ""
    return ((f"{label[: MARGIN - 2]:>{MARGIN - 2}} ", MUTED), ("│", MUTED))


def _scale(chart: Chart) -> tuple[float, float]:
    """From 0, or where the values lie with a margin; never below 0 where no value is."""
    values = chart.values
    low, high = limits_of([0.0, *values] if chart.from_zero else values)
    return (max(0.0, low), high) if values and min(values) >= 0 and high > 0 else (low, high)


def _joined(cells: Sequence[tuple[str, str]]) -> Row:
    """Neighbours of one kind together."""
    pieces: list[tuple[str, str]] = []
    for text, kind in cells:
        if pieces and pieces[-1][1] == kind:
            pieces[-1] = (pieces[-1][0] + text, kind)
        else:
            pieces.append((text, kind))
    return tuple(pieces)
