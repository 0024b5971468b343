"""A document's parts as they stand on a screen of a given width: wrapped, and no table wider than it."""

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from engine.text import clean
from tuning.document import Code, Heading, Paragraph, Part, Picture, Points, Table

GAP = "  "
LEAST_WIDTH = 20


def document_content(parts: Sequence[Part], width: int) -> Content:
    """All parts, a blank line between them. `width` in cells."""
    width = max(width, LEAST_WIDTH)
    blocks = [lines for part in parts if (lines := _lines(part, width))]
    joined = [line for at, block in enumerate(blocks) for line in ([Content("")] if at else []) + block]
    return Content("\n").join(joined)


def _lines(part: Part, width: int) -> list[Content]:
    if isinstance(part, Heading):
        return [Content.styled(line, "bold $accent") for line in wrapped(part.text, width)]
    if isinstance(part, Paragraph):
        return [Content.styled(line, "bold" if part.strong else "") for line in wrapped(part.text, width)]
    if isinstance(part, Points):
        return [
            Content(f"{'· ' if at == 0 else '  '}{line}")
            for point in part.lines
            for at, line in enumerate(wrapped(point, width - 2))
        ]
    if isinstance(part, Code):
        return [Content(f"  {line}") for code in part.text.split("\n") for line in wrapped(code, width - 2)]
    if isinstance(part, Picture):
        return []
    caption = [Content(line) for line in wrapped(part.caption, width)]
    return caption + [Content.styled(line, "bold" if is_header else "") for is_header, line in _table(part, width)]


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many cells, broken at blanks; a word that is longer is broken where the line ends."""
    lines: list[str] = []
    line = ""
    for word in clean(text).split():
        if line and cell_len(line) + 1 + cell_len(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
        while cell_len(line) > width:
            head = _head(line, width)
            lines.append(head)
            line = line[len(head) :]
    return [*lines, line] if line else lines


def _head(text: str, width: int) -> str:
    """As much of its beginning as fits, at least one character."""
    end = len(text)
    while end > 1 and cell_len(text[:end]) > width:
        end -= 1
    return text[:end]


def _table(table: Table, width: int) -> list[tuple[bool, str]]:
    """(Whether it is a header, the line). Columns that do not fit beside the first one stand below, beside it again."""
    rows = [tuple(map(clean, row)) for row in (table.header, *table.rows)]
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(table.header))]
    widths[0] = min(widths[0], width // 2)
    return [
        (at == 0, _head(_row(row, widths, columns, table.right), width))
        for columns in _chunks(widths, width)
        for at, row in enumerate(rows)
    ]


def _chunks(widths: Sequence[int], width: int) -> list[list[int]]:
    """The columns that stand beside the first at once."""
    chunks: list[list[int]] = [[]]
    used = widths[0]
    for column in range(1, len(widths)):
        needed = len(GAP) + widths[column]
        if chunks[-1] and used + needed > width:
            chunks.append([])
            used = widths[0]
        chunks[-1].append(column)
        used += needed
    return chunks


def _row(row: Sequence[str], widths: Sequence[int], columns: Sequence[int], right: frozenset[int]) -> str:
    cells = [_head(row[0], widths[0]) if cell_len(row[0]) > widths[0] else row[0], *(row[column] for column in columns)]
    padded = []
    for column, cell in zip((0, *columns), cells, strict=True):
        blanks = " " * (widths[column] - cell_len(cell))
        padded.append(blanks + cell if column in right else cell + blanks)
    return GAP.join(padded).rstrip()
