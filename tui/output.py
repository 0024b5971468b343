"""What the commands print: plain lines, aligned columns, one JSON object a call. No cursor tricks, no colour."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.text import redact

SCHEMA = 1
_PLAIN = str.maketrans(
    {"✔": "+", "▲": "!", "✗": "x", "→": "->", "×": "x", "…": "...", "–": "-", "−": "-", "±": "+-", "“": '"', "”": '"'}
)


class UsageError(Exception):
    """Arguments or a file that cannot be used; one line that says what to do. Ends with exit status 2."""


class OutputLost(Exception):
    """Standard output takes nothing any more, and not because its reader has left; one line."""


def say(line: str = "") -> None:
    """One line to standard output, at once: a person or a pipe follows it. Raises BrokenPipeError, OutputLost."""
    try:
        try:
            print(line, flush=True)
        except UnicodeEncodeError:  # a locale without UTF-8: better plain signs than nothing
            encoding = sys.stdout.encoding
            print(line.translate(_PLAIN).encode(encoding, "replace").decode(encoding), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(f"standard output cannot be written ({error.strerror}): send it somewhere else") from None


def open_closed() -> None:
    """Let the standard streams that whoever started us has closed (`>&-`) lead nowhere: Python leaves them out, and the
    next file that is opened takes their number. To be called before any file is opened."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            if nowhere != number:
                os.dup2(nowhere, number)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


def drop_output() -> None:
    """Let what is still buffered for standard output go nowhere: written at exit, it would raise again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(line: str) -> None:
    """Each line of a message to standard error, under the program's name; keys and passwords in it are hidden."""
    for part in redact(line).splitlines() or [""]:
        print(f"llmtune: {part}", file=sys.stderr, flush=True)


def say_json(payload: Mapping[str, Any], *, compact: bool = False) -> None:
    """One JSON object with `"schema": 1` first; `compact` keeps it on one line, for streams."""
    whole = {"schema": SCHEMA, **payload}
    ascii_only = sys.stdout.encoding.lower().replace("-", "") != "utf8"
    say(json.dumps(whole, ensure_ascii=ascii_only, allow_nan=False, indent=None if compact else 2))


def columns(header: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Lines of a table under its header, two spaces between columns; the columns in `right` are right-aligned."""
    table = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[index]) for row in table) for index in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
