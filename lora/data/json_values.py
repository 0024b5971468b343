"""JSON values of a text one after the other, with the line on which each begins: `json.loads` tells no lines, and
gives nothing at all of a list that breaks off."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lora.data.decoding import has_bad_byte
from lora.data.records import Fault, FaultKind, Record

_SPACE = re.compile(r"[ \t\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Values:
    records: tuple[Record, ...]
    faults: tuple[Fault, ...]


class _Lines:
    """The line of a place in a text; places must not go down."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line, self._place = 1, 0

    def at(self, place: int) -> int:
        self._line += self._text.count("\n", self._place, place)
        self._place = place
        return self._line


def parse_lines(text: str) -> Values:
    """JSON lines. Split at `\\n` alone: U+2028 and its like may stand in a string as they are."""
    records: list[Record] = []
    faults: list[Fault] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            kind: FaultKind = "encoding" if has_bad_byte(line) else "broken"
            faults.append(Fault(number, kind, _why(error)))
            continue
        _add(number, value, records, faults)
    return Values(tuple(records), tuple(faults))


def parse_list(text: str, start: int, *, alone: bool = False) -> Values:
    """The members of a JSON list that begins with the `[` at `start`; `alone` where nothing may follow it. What follows
    a mistake is lost, and said so."""
    records: list[Record] = []
    faults: list[Fault] = []
    lines = _Lines(text)
    place = _skip(text, start + 1)
    while text[place : place + 1] != "]":
        behind_value = _take(text, place, lines, records, faults)
        if behind_value is None:
            break
        place = behind_value
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != "]":
            faults.append(Fault(lines.at(place), "cut_off", "neither , nor ] behind a record"))
            break
    else:
        behind = _skip(text, place + 1)
        if alone and behind < len(text):
            faults.append(Fault(lines.at(behind), "cut_off", "more behind the end of the list"))
    return Values(tuple(records), tuple(faults))


def parse_stream(text: str) -> Values:
    """Values that follow each other over several lines each, without a list around them."""
    records: list[Record] = []
    faults: list[Fault] = []
    lines = _Lines(text)
    place = _skip(text, 0)
    while place < len(text):
        behind_value = _take(text, place, lines, records, faults)
        if behind_value is None:
            break
        place = behind_value
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
    return Values(tuple(records), tuple(faults))


def _take(text: str, place: int, lines: "_Lines", records: list[Record], faults: list[Fault]) -> int | None:
    """Add the value that begins at `place`; the place of what follows it. None behind a mistake: the rest is lost."""
    line = lines.at(place)
    try:
        value, behind = _DECODER.raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        faults.append(Fault(line, "cut_off", _why(error)))
        return None
    _add(line, value, records, faults)
    return _skip(text, behind)


def fields(text: str) -> Iterator[tuple[str, int, Any]]:
    """Name, place and value of each field of the JSON object that the text begins with. Raises ValueError."""
    place = _skip(text, _skip(text, 0) + 1)
    while text[place : place + 1] == '"':
        name, place = _DECODER.raw_decode(text, place)
        place = _skip(text, place)
        if text[place : place + 1] != ":":
            raise ValueError(f"no : after {name}")
        start = _skip(text, place + 1)
        value, place = _DECODER.raw_decode(text, start)
        yield name, start, value
        place = _skip(text, place)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _add(line: int, value: Any, records: list[Record], faults: list[Fault]) -> None:
    if isinstance(value, dict):
        records.append(Record(line, value))
    else:
        faults.append(Fault(line, "not_object", f"a {_NAMES.get(type(value), 'number')}"))


_NAMES = {list: "list", str: "text", type(None): "null", bool: "truth value"}


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"
    return "nested too deep" if isinstance(error, RecursionError) else str(error)
