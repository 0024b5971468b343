"""Panels drawn under each other with one left margin and one time axis, as rows of styled characters. Pure.

A panel is a row of words and below it the lines. The lines are kept once they are drawn: a cursor that moves, or a
figure at it, costs no new picture.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len
from textual.content import Content

from engine.text import clean
from tui import braille, chart
from tui.format import number
from tui.runs.run_charts import Line, Mark, Panel
from tui.runs.run_series import nearest

MARGIN = 9  # cells before the lines: a number of seven, a blank, the axis
APART = 14  # cells between two markers of one line
LIMIT, THROUGH, CURSOR, FLAG = "┈", "┊", "│", "▲"
STYLES = ("$accent", "$success")
QUIET = "$text-muted"

Cell = tuple[str, str]
Row = list[Cell]


@dataclass(frozen=True, slots=True)
class Frame:
    """What all panels of a column share: the seconds that the axis shows, and the cells of the whole row."""

    limits: tuple[float, float]
    width: int

    @property
    def inner(self) -> int:
        return max(2, self.width - MARGIN)

    @property
    def seconds(self) -> float:
        """What one column of cells is in time: two dots."""
        return 2 * (self.limits[1] - self.limits[0]) / (2 * self.inner - 1)

    def column(self, moment: float) -> int | None:
        """The column of a moment, from 0; None beyond the axis."""
        if not self.limits[0] <= moment <= self.limits[1]:
            return None
        return braille.place(moment, self.limits, 2 * self.inner) // 2

    def moment(self, column: int) -> float:
        """The moment in the middle of a column."""
        return self.limits[0] + (column + 0.25) * self.seconds


Pictures = dict[tuple[str, Frame, int], list[Row]]


def panel_rows(
    panel: Panel, frame: Frame, height: int, marks: Sequence[Mark], cursor: int | None, kept: Pictures
) -> list[Row]:
    """`height` rows of `frame.width` cells: the words, then the lines. `cursor` is a column; `kept` holds the pictures
    of these charts that were drawn before, and gets this one."""
    key = (panel.key, frame, height)
    if key not in kept:
        kept[key] = _picture(panel, frame, height - 1, marks)
    rows = kept[key]
    if cursor is not None:
        rows = [[*row] for row in rows]
        at = MARGIN + cursor
        for row in rows:
            row[at] = (CURSOR, "bold") if row[at][0] == " " else (row[at][0], "reverse")
    return [_words(panel, frame, cursor), *rows]


def _picture(panel: Panel, frame: Frame, height: int, marks: Sequence[Mark]) -> list[Row]:
    """The rows below the words, with the numbers beside them and all that lies behind the lines."""
    top, inner = panel.top, frame.inner
    canvases = [braille.canvas(line.points, frame.limits, (0.0, top), inner, height) for line in panel.lines]
    rows = _merged(canvases, inner, height)
    for number_, line in enumerate(panel.lines):
        for x, y in _places(panel, number_, frame):
            rows[_row_of(y, top, height)][frame.column(x) or 0] = (line.marker, STYLES[number_ % len(STYLES)])
    if panel.limit is not None and panel.limit.value <= top:
        _underlay(rows[_row_of(panel.limit.value, top, height)], range(inner), LIMIT, "$warning")
    for mark in marks:
        column = frame.column(mark.at)
        if mark.through and column is not None:
            for row in rows:
                _underlay(row, (column,), THROUGH, QUIET)
    for flag in panel.flags:
        column = frame.column(flag)
        if column is not None:
            rows[-1][column] = (FLAG, "$warning")
    return [_margin(at, top, height) + row for at, row in enumerate(rows)]


def _places(panel: Panel, at: int, frame: Frame) -> list[tuple[float, float]]:
    """Where a line's marker lies on it: now and then where there are several lines, and on points that stand alone."""
    points, places, last = panel.lines[at].points, [], None
    several = len(panel.lines) > 1
    shift = at * APART // max(1, len(panel.lines))
    for number_, (x, y) in enumerate(points):
        if x is None or y is None:
            continue
        alone = all(points[beside][1] is None for beside in (number_ - 1, number_ + 1) if 0 <= beside < len(points))
        column = frame.column(x) if several or alone else None
        if column is None:
            continue
        slot = (column - shift) // APART
        if (alone and (last is None or column > last[1])) or (several and (last is None or slot != last[0])):
            places.append((x, y))
            last = slot, column
    return places


def _merged(canvases: Sequence[Sequence[str]], width: int, height: int) -> list[Row]:
    """The lines over each other: dots of one cell are joined, the later line gives the colour."""
    rows: list[Row] = [[(" ", "")] * width for _ in range(height)]
    for at, canvas in enumerate(canvases):
        style = STYLES[at % len(STYLES)]
        for row, line in zip(rows, canvas, strict=True):
            for column, character in enumerate(line):
                if character == " ":
                    continue
                below = row[column][0]
                dots = ord(character) | ord(below) if braille.is_dots(below) else ord(character)
                row[column] = (chr(dots), style)
    return rows


def _underlay(row: Row, columns: Iterable[int], character: str, style: str) -> None:
    for column in columns:
        if row[column][0] == " ":
            row[column] = (character, style)


def _row_of(value: float, top: float, height: int) -> int:
    return height - 1 - braille.place(value, (0.0, top), 4 * height) // 4


def _margin(at: int, top: float, height: int) -> Row:
    """The number beside a row, of the highest and the lowest; the axis beside all."""
    label = scale_label(top) if at == 0 else "0" if at == height - 1 else ""
    return [*((character, QUIET) for character in label[: MARGIN - 2].rjust(MARGIN - 2)), (" ", ""), ("│", QUIET)]


def scale_label(value: float) -> str:
    """A number beside the axis in at most seven characters: `150`, `30,000`, `1.5 M`."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:g} {letter}"
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def _words(panel: Panel, frame: Frame, cursor: int | None) -> Row:
    """Title, each line's figure, the limit where there is room for it."""
    moment = None if cursor is None else frame.moment(cursor)
    room = frame.width - 1
    cells = _figures(panel, moment, frame.seconds, short=False)
    if len(cells) > room:
        cells = _figures(panel, moment, frame.seconds, short=True)
    rest = [f"  {LIMIT} {panel.limit.words}"] if panel.limit is not None else []
    rest += [f"  {FLAG} held back: {narrow(clean(panel.flag_words, 60))}"] if panel.flags else []
    for words in rest:
        if len(cells) + len(words) <= room:
            cells += [(character, "$warning" if character in (LIMIT, FLAG) else QUIET) for character in words]
    return [(" ", ""), *cells][: frame.width] + [(" ", "")] * (room - len(cells))


def _figures(panel: Panel, moment: float | None, seconds: float, short: bool) -> Row:
    cells = [(character, "bold") for character in panel.title]
    for at, line in enumerate(panel.lines):
        marker = f"  {line.marker}" if len(panel.lines) > 1 else ""
        cells += [(character, STYLES[at % len(STYLES)]) for character in marker]
        shown = figure(line, panel, moment, seconds, short)
        cells += [(character, "") for character in f"{f' {line.label}' if line.label else ''} "]
        cells += [(character, "bold" if moment is not None else "") for character in shown]
    return cells


def narrow(words: str) -> str:
    """One cell a character: what takes two or none becomes a dot."""
    return "".join(character if cell_len(character) == 1 else "·" for character in words)


def figure(line: Line, panel: Panel, moment: float | None, within: float, short: bool = False) -> str:
    """What the line comes to, or its value at the moment, with the unit; `<10 ms` where only a bound is known."""
    if moment is None:
        return (line.short if short else line.summary) + (panel.unit if line.summary != "–" else "")
    point = nearest(line.points, moment, within)
    return "–" if point is None else line.signs.get(point[0], "") + number(point[1], panel.decimals, panel.unit)


def axis_rows(frame: Frame, marks: Sequence[Mark], label: Callable[[float], str], offset: float) -> list[Row]:
    """The axis with what happened on it, and the moments below. `offset`: see chart.time_ticks."""
    axis: Row = [(character, QUIET) for character in " " * (MARGIN - 1) + "└" + "─" * frame.inner]
    below: Row = [(" ", "")] * frame.width
    for moment in chart.time_ticks(frame.limits, max(2, frame.inner // 12), offset):
        column = frame.column(moment)
        words = label(moment)
        if column is None:
            continue
        axis[MARGIN + column] = ("┬", QUIET)
        begin = MARGIN + column - len(words) // 2
        begin = min(max(0, begin), frame.width - len(words))
        if all(below[at][0] == " " for at in range(max(0, begin - 1), begin + len(words))):
            below[begin : begin + len(words)] = [(character, QUIET) for character in words]
    for mark in sorted(
        marks, key=lambda mark: mark.through
    ):  # what is drawn through all panels hides what is beside it
        if (column := frame.column(mark.at)) is not None:
            axis[MARGIN + column] = (mark.glyph, "bold $warning")
    return [axis, below]


def beside(columns: Sequence[Sequence[Row]], gap: int) -> list[Row]:
    """Columns of rows next to each other; a shorter one is filled up above its last two rows (its axis)."""
    height = max(map(len, columns))
    filled = []
    for rows in columns:
        blank = [[(" ", "")] * len(rows[0])] * (height - len(rows))
        filled.append([*rows[:-2], *blank, *rows[-2:]])
    return [[cell for part in parts for cell in (*part, *[(" ", "")] * gap)] for parts in zip(*filled, strict=True)]


def content(rows: Iterable[Row]) -> Content:
    """The rows as text, neighbours of one style together."""
    lines = []
    for row in rows:
        parts = [
            ("".join(character for character, _ in cells), style) for style, cells in groupby(row, key=lambda c: c[1])
        ]
        lines.append(Content.assemble(*parts))
    return Content("\n").join(lines)
