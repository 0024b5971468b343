"""Lines in braille dots, two by four a cell: what panels under each other are drawn with.

plotext draws the charts that stand alone (tui.chart). For a dozen small panels without frames it would load for a fifth
of a second and 14 MiB, and every moving cursor would be as many of its figures.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tui.chart import Point, broken_runs, clamped

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column within the cell
BLANK = 0x2800

Limits = tuple[float, float]


def place(value: float, limits: Limits, dots: int) -> int:
    """The dot, of so many on an axis, on which a value lies; one beyond the limits lies on the end."""
    share = (clamped(value, limits) - limits[0]) / (limits[1] - limits[0])
    return round(share * (dots - 1))


def canvas(points: Iterable[Point], x_limits: Limits, y_limits: Limits, width: int, height: int) -> list[str]:
    """One line: `height` strings of `width` cells, blank where there is none of it.

    Points without a finite coordinate break the line. Those beyond the x limits are left out, beyond the y limits they
    lie on the edge. A stretch of one point is one dot.
    """
    if width < 1 or height < 1 or x_limits[0] >= x_limits[1] or y_limits[0] >= y_limits[1]:
        return [" " * max(width, 0)] * max(height, 0)
    cells = [[BLANK] * width for _ in range(height)]
    for run in broken_runs(points):
        inside = [point for point in run if x_limits[0] <= point[0] <= x_limits[1]]
        dots = [
            (place(x, x_limits, 2 * width), 4 * height - 1 - place(y, y_limits, 4 * height))
            for x, y in with_peaks(inside, 4 * width)
        ]
        for x, y in _joined(dots):
            cells[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
    return ["".join(" " if cell == BLANK else chr(cell) for cell in row) for row in cells]


def with_peaks(run: Sequence[tuple[float, float]], at_most: int) -> list[tuple[float, float]]:
    """No more than `at_most` of the points: of each stretch the lowest and the highest, so that no peak is lost."""
    if len(run) <= max(at_most, 4):
        return list(run)
    stretches = max(2, at_most // 2)
    kept: list[tuple[float, float]] = []
    for at in range(stretches):
        part = run[at * len(run) // stretches : (at + 1) * len(run) // stretches]
        low, high = min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])
        kept += sorted({low, high})
    return kept


def _joined(dots: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The dots with straight lines between them."""
    yield from dots[:1]
    for (x0, y0), (x1, y1) in pairwise(dots):
        steps = max(abs(x1 - x0), abs(y1 - y0))
        for step in range(1, steps + 1):
            yield round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps)


def is_dots(character: str) -> bool:
    """Whether it is a cell of such a line."""
    return "\u2800" < character <= "\u28ff"
