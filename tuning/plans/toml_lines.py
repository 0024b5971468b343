"""On which line of a TOML text a key stands: tomllib reads values but forgets where they were.

A line scanner, not a parser: it is only asked about texts that tomllib has accepted. Inside inline tables and arrays it
knows the elements that begin a line of their own; everything else is on the line of the key that holds it.
"""

import re
from collections.abc import Iterator, Mapping

KeyPath = tuple[str | int, ...]

_KEY_PART = re.compile(r"""\s*(?:(?P<bare>[A-Za-z0-9_-]+)|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)')\s*""")
_VALUE_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#[^\n]*|[\[\]{}]')


def key_lines(text: str) -> dict[KeyPath, int]:
    """Every table and key of `text` with its 1-based line; arrays of tables have an index: `("workload", 0, "name")`.

    A table header that is repeated or extended keeps its first line.
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line, after in _statements(text):
        header = re.match(r"\s*(\[\[?)(.*?)(\]\]?)\s*(?:#.*)?$", line)
        if header:
            table = _indexed(_parts(header[2])[0], counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, counts[table])
            _remember(lines, table, number)
            continue
        parts, rest = _parts(line)
        if parts and rest.startswith("="):
            path = (*table, *parts)
            _remember(lines, path, number, above=len(table))
            for element, element_line in _elements(rest[1:] + after, number):
                lines.setdefault((*path, element), element_line)
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """The line of `path`, or of the nearest thing around it that has one; 1 when nothing has."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def _remember(lines: dict[KeyPath, int], path: KeyPath, number: int, above: int = 0) -> None:
    for length in range(above + 1, len(path) + 1):
        lines.setdefault(path[:length], number)


def _indexed(parts: tuple[str, ...], counts: Mapping[KeyPath, int]) -> KeyPath:
    """A header's key path with the index of the current element after every array of tables but the last part."""
    path: KeyPath = ()
    for position, part in enumerate(parts):
        path = (*path, part)
        if path in counts and position < len(parts) - 1:
            path = (*path, counts[path])
    return path


def _parts(line: str) -> tuple[tuple[str, ...], str]:
    """The dotted key at the start of `line`, and what follows it."""
    parts: list[str] = []
    position = 0
    while match := _KEY_PART.match(line, position):
        parts.append(next(group for group in match.groups() if group is not None))
        position = match.end()
        if not line.startswith(".", position):
            break
        position += 1
    return tuple(parts), line[position:]


def _statements(text: str) -> Iterator[tuple[int, str, str]]:
    """(line number, line, the further lines of its value) for every header and every `key = value`."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        start = index
        index += 1
        if not lines[start].strip() or lines[start].lstrip().startswith(("#", "[")):
            if lines[start].lstrip().startswith("["):
                yield start + 1, lines[start], ""
            continue
        value = _parts(lines[start])[1]
        while _open_ended(value) and index < len(lines):
            value += "\n" + lines[index]
            index += 1
        yield start + 1, lines[start], "\n" + "\n".join(lines[start + 1 : index]) if index > start + 1 else ""


def _open_ended(value: str) -> bool:
    """True while a bracket or a multi-line string in `value` is not closed."""
    return _scan(value)[0]


def _elements(value: str, first_line: int) -> Iterator[tuple[int, int]]:
    """(index, line) of the texts, inline tables and arrays that stand directly in the array `value`."""
    for index, offset in enumerate(_scan(value)[1]):
        yield index, first_line + value.count("\n", 0, offset)


def _scan(value: str) -> tuple[bool, list[int]]:
    """Whether `value` is still open, and where texts and brackets begin at depth one (an array's elements)."""
    depth = 0
    position = 0
    opened: list[int] = []
    while match := _VALUE_TOKEN.search(value, position):
        token = match[0]
        position = match.end()
        if depth == 1 and token[0] in "\"'{[":
            opened.append(match.start())
        if token in ('"""', "'''"):
            end = value.find(token, position)
            if end < 0:
                return True, opened
            position = end + 3
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
    return depth > 0, opened
