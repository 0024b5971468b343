"""What limits the server, in a fixed number of lines: the finding, and which knob can or cannot help."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from engine.limiting.bottleneck import Limit
from engine.text import clean
from tui.panels.row import ACCENT, GOOD, MUTED, PLAIN, STRONG, WARNING, Piece, Row, fit, outside

GLYPHS = {"compute": ("●", GOOD), "client": ("○", ACCENT), "idle": ("○", MUTED), "unknown": ("?", MUTED)}
LIMITED = ("▶", WARNING)
LONGEST = 600
FEWEST, MOST = 2, 3  # lines: few findings need the third


def limit_rows(limit: Limit | None, width: int, lines: int = 2) -> list[Row]:
    """The sentence strong, the advice plain, wrapped at words; what does not fit ends in an ellipsis."""
    if limit is None or width < 8 or lines < 1:
        return []
    glyph, kind = GLYPHS.get(limit.kind, LIMITED)
    wrapped = _wrapped(limit, width - 2)
    rows: list[Row] = []
    for at, line in enumerate(wrapped[:lines]):
        if at + 1 == lines < len(wrapped):
            line = [*(line[:-1] if _width(line) + 2 > width - 2 else line), ("…", PLAIN)]
        rows.append(fit(_joined([(f"{glyph} ", kind) if at == 0 else ("  ", PLAIN), *_spaced(line)]), width))
    return rows


def lines_wanted(limit: Limit | None, width: int) -> int:
    """Lines that it takes in whole, between FEWEST and MOST."""
    return min(MOST, max(FEWEST, len(_wrapped(limit, width - 2)))) if limit is not None and width >= 8 else FEWEST


def _wrapped(limit: Limit, width: int) -> list[list[Piece]]:
    """The words in lines of at most `width` cells; a word longer than that is cut."""
    lines: list[list[Piece]] = [[]]
    for word, kind in _words(limit):
        if lines[-1] and _width(lines[-1]) + 1 + cell_len(word) > width:
            lines.append([])
        lines[-1].append((word if cell_len(word) <= width else outside(word, width), kind))
    return lines


def _words(limit: Limit) -> Iterator[Piece]:
    for text, kind in ((limit.sentence, STRONG), (limit.advice, PLAIN)):
        for word in clean(text, LONGEST).split():
            yield word, kind


def _width(line: Sequence[Piece]) -> int:
    """Cells of words with a blank between them."""
    return sum(cell_len(word) + 1 for word, _ in line) - 1


def _spaced(line: Sequence[Piece]) -> Iterator[Piece]:
    for at, (word, kind) in enumerate(line):
        yield (f" {word}" if at else word), kind


def _joined(pieces: Sequence[Piece]) -> Row:
    """Neighbours of one kind as one piece: fewer pieces are cheaper to draw."""
    joined: list[Piece] = []
    for text, kind in pieces:
        if joined and joined[-1][1] == kind:
            joined[-1] = (joined[-1][0] + text, kind)
        else:
            joined.append((text, kind))
    return tuple(joined)
