"""A row of a panel: pieces of text, each with what it means. How they look is the widget's (tui/widgets/lines.py)."""

import math
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from engine.text import clean
from tui.format import ABSENT, number

PLAIN, MUTED, STRONG, GOOD, WARNING, ERROR, ACCENT = "", "muted", "strong", "good", "warning", "error", "accent"

Piece = tuple[str, str]
Row = tuple[Piece, ...]

GAP = 1  # cells between two columns of panels: two of the narrowest suit 80 cells
NAME_W = 13  # of a figure's name; the figure ends where the first cell of a group does
GROUP_W, CELL_W = 10, 14  # of a group's name, of one of its cells: two of them in the narrowest panel
NARROWEST = GROUP_W + 2 * CELL_W + 1


def text_of(row: Row) -> str:
    """The row without what its pieces mean."""
    return "".join(text for text, _ in row)


def width_of(row: Row) -> int:
    """Cells that the row takes on a terminal."""
    return sum(cell_len(text) for text, _ in row)


def outside(text: object, width: int) -> str:
    """Text that is not ours (a label's value), safe to show, in exactly `width` cells, cut with an ellipsis."""
    shown = clean(str(text)[: 4 * width + 64])
    if cell_len(shown) > width:
        shown = set_cell_size(shown, width - 1).rstrip() + "…" if width > 0 else ""
    return set_cell_size(shown, width)


def fit(row: Row, width: int) -> Row:
    """The row in exactly `width` cells: cut, or filled with blanks."""
    pieces: list[Piece] = []
    left = width
    for text, kind in row:
        cells = cell_len(text)
        if cells > left:
            pieces.append((set_cell_size(text, left), kind))
            return tuple(pieces)
        pieces.append((text, kind))
        left -= cells
    return (*pieces, (" " * left, PLAIN)) if left else tuple(pieces)


def figure(value: float | None, width: int, decimals: int = 0, unit: str = "") -> str:
    """A number with its unit, right-aligned in exactly `width` cells; one too large for them in powers of ten."""
    if value is None or not math.isfinite(value):
        return f"{ABSENT}{' ' * len(unit)}"[:width].rjust(width)
    shown = number(value, decimals, unit)
    if len(shown) > width:
        shown = f"{value:.1e}{unit}"
    return shown.rjust(width) if len(shown) <= width else f">1e{int(math.log10(abs(value)))}"[:width].rjust(width)


def brief(value: float | None, decimals: int = 0, unit: str = "", limit: int = 12) -> str:
    """The same without padding, for running text: at most `limit` cells."""
    return figure(value, limit, decimals, unit).strip()


def per_second(value: float | None, width: int) -> str:
    """A rate: one decimal below 100, none above, so that its width stays."""
    return figure(value, width, decimals_of(value), "/s")


def decimals_of(value: float | None) -> int:
    """Decimals that leave a figure three significant digits or more."""
    return 1 if value is not None and math.isfinite(value) and abs(value) < 99.95 else 0


def title(name: str, width: int, window_s: float | None = None, note: str = "") -> Row:
    """`── scheduler  last 60 s ─────────`, with a note behind; the panel's own words are cut before its rule is."""
    head = f" {name} " if window_s is None else f" {name}  {last(window_s)} "
    room = width - 2 - len(head)
    shown = outside(note, min(cell_len(note), max(0, room - 3))) if note else ""
    rule = max(0, room - cell_len(shown) - (1 if shown else 0))
    return fit((("──", MUTED), (head, ACCENT), (f"{shown} " if shown else "", PLAIN), ("─" * rule, MUTED)), width)


def last(window_s: float) -> str:
    """`last 60 s`, `last 5 min`: what window a figure is of."""
    return f"last {window_s:g} s" if window_s < 120 else f"last {window_s / 60:g} min"


def group(name: str, cells: Sequence[tuple[str, str, str]], width: int) -> list[Row]:
    """(label, value, kind of the value) side by side under one name, as many on a row as there is room for.

    Labels may be text from outside. The values stand in the same columns whatever they are.
    """
    room = width - GROUP_W
    across = max(1, (room + 1) // (CELL_W + 1))
    cell = max(4, min(CELL_W, (room - across + 1) // across))
    rows: list[Row] = []
    for at in range(0, len(cells), across):
        pieces: list[Piece] = [(f"{name if at == 0 else '':<{GROUP_W}}", MUTED)]
        for column, (label, value, kind) in enumerate(cells[at : at + across]):
            shown = outside(label, max(0, cell - len(value) - 1))
            pieces += [(f"{' ' if column else ''}{shown} ", MUTED), (value, kind)]
        rows.append(fit(tuple(pieces), width))
    return rows


def named(name: str, value: str, note: str = "", kind: str = STRONG, note_kind: str = PLAIN) -> Row:
    """A figure with its name before it and what belongs to it behind."""
    value_w = GROUP_W + CELL_W - NAME_W
    return ((f"{name:<{NAME_W}}", MUTED), (value.rjust(value_w), kind), (f"  {note}" if note else "", note_kind))


def beside(columns: Iterable[Sequence[Row]], widths: Sequence[int], height: int) -> list[Row]:
    """Columns of rows side by side, each filled to its width and to `height` rows."""
    filled = [list(column)[:height] for column in columns]
    rows = []
    for at in range(height):
        pieces: list[Piece] = []
        for number_of, (column, width) in enumerate(zip(filled, widths, strict=True)):
            if number_of:
                pieces.append((" " * GAP, PLAIN))
            pieces += fit(column[at], width) if at < len(column) else ((" " * width, PLAIN),)
        rows.append(tuple(pieces))
    return rows
