"""A report's parts, and the same parts as plain text or Markdown; `tuning.reporting.page` makes HTML of them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from engine.text import clean


@dataclass(frozen=True, slots=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A list, a line each."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`right` are the columns of numbers; the first cell of a row names it. A line end in a cell is one in HTML, and a
    space elsewhere."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy, as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG, in HTML only: what it shows must stand in a table, too."""

    svg: Element
    caption: str


Part = Heading | Paragraph | Points | Table | Code | Picture


def as_text(parts: Sequence[Part]) -> str:
    """For a terminal: no markup, columns aligned, two spaces between them."""
    return _joined(parts, _text_lines)


def as_markdown(parts: Sequence[Part]) -> str:
    """For a file: text from outside stands as it is, whatever signs it holds."""
    return _joined(parts, _markdown_lines)


def _joined(parts: Sequence[Part], lines_of: Callable[[Part], list[str]]) -> str:
    blocks = ["\n".join(lines_of(part)) for part in parts]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _text_lines(part: Part) -> list[str]:
    if isinstance(part, Heading | Paragraph):
        return [clean(part.text)]
    if isinstance(part, Points):
        return [f"  {clean(line)}" for line in part.lines]
    if isinstance(part, Code):
        return [f"    {clean(line)}".rstrip() for line in part.text.split("\n")]
    if isinstance(part, Picture):
        return []
    caption = [f"{clean(part.caption)}:"] if part.caption else []
    table = [tuple(map(clean, row)) for row in (part.header, *part.rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return caption + [
        "  ".join(
            cell.rjust(width) if index in part.right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _markdown_lines(part: Part) -> list[str]:
    if isinstance(part, Heading):
        return [f"{'#' * part.level} {escaped(part.text)}"]
    if isinstance(part, Paragraph):
        line = _begun(escaped(part.text))
        return [f"**{line}**" if part.strong and line else line]
    if isinstance(part, Points):
        return [f"- {_begun(escaped(line))}" for line in part.lines]
    if isinstance(part, Code):
        return [f"    {clean(line)}".rstrip() for line in part.text.split("\n")]
    if isinstance(part, Picture):
        return []
    caption = [f"{_begun(escaped(part.caption))}:", ""] if part.caption else []
    dashes = ["---:" if index in part.right else "---" for index in range(len(part.header))]
    rows = [map(escaped, row) for row in part.rows]
    return caption + [f"| {' | '.join(row)} |" for row in (map(escaped, part.header), dashes, *rows)]


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line and in one table cell."""
    return re.sub(r"([\\`*_\[\]<>|#~]|&(?=#?\w+;))", r"\\\1", clean(text)).strip()


def _begun(line: str) -> str:
    """What would make a list or a rule of the line it begins is escaped."""
    return re.sub(r"^(?:(\d+)(?=[.)]\s)|(?=[-+](?:\s|$)|--|=))", r"\1\\", line)
