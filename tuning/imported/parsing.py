"""The JSON values in a file's bytes, whatever was done to it: appended, pretty-printed, cut off, or no JSON at all.

vLLM writes one object (`--save-result`), objects one a line (`--append-result`, 0.9 on), or, in a sweep's
summary.json, an array. Python's json writes NaN and Infinity as such, which JSON does not know; they are taken.
"""

import codecs
import json
import math
from dataclasses import dataclass
from typing import Any

LIMIT_BYTES = 128 * 2**20
_MOST_BREAKS = 100
_MOST_DIGITS = 18  # an integer of more fits neither SQLite nor any count of vLLM's
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_PRINTED_TABLE = "Serving Benchmark Result"


@dataclass(frozen=True, slots=True)
class Parsed:
    """`values` in the order of the file. `trouble` is one line where some of it could not be read, `not_finite` how
    many NaN, Infinity and numbers beyond any size stood in it."""

    values: tuple[Any, ...]
    trouble: str | None = None
    not_finite: int = 0


def parse(data: bytes) -> Parsed:
    """Values of `data`; a broken one does not hide those after it that begin a line."""
    text, trouble = _text(data)
    if trouble is not None:
        return Parsed((), trouble)
    stripped = text.lstrip()
    if not stripped:
        return Parsed((), "is empty")
    if stripped[0] not in "{[":
        return Parsed((), _no_json(text))
    return _Reading(text).parsed()


class _Reading:
    """Walks over a text of JSON values."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._not_finite = 0
        self._quick = json.JSONDecoder(parse_constant=self._odd)
        # Takes thrice as long: a call of Python for each number of a file of millions.
        self._careful = json.JSONDecoder(parse_constant=self._odd, parse_int=self._whole, parse_float=self._real)

    def parsed(self) -> Parsed:
        values: list[Any] = []
        broken: list[str] = []
        at = self._skip(0)
        while at < len(self._text):
            try:
                value, at = self._decoded(at)
                values.append(value)
            except json.JSONDecodeError as error:
                broken.append(self._broken(error))
                at = self._next_line(at)
            except RecursionError:
                broken.append("it is nested too deeply to be a result")
                break
            if len(broken) >= _MOST_BREAKS:
                break
            at = self._skip(at)
        return Parsed(tuple(values), _trouble(broken, len(values)), self._not_finite)

    def _decoded(self, at: int) -> tuple[Any, int]:
        odd = self._not_finite
        try:
            return self._quick.raw_decode(self._text, at)
        except json.JSONDecodeError:
            raise
        except ValueError:  # an integer of more digits than Python takes
            self._not_finite = odd
            return self._careful.raw_decode(self._text, at)

    def _skip(self, at: int) -> int:
        while at < len(self._text) and self._text[at] in " \t\r\n":
            at += 1
        return at

    def _next_line(self, at: int) -> int:
        found = min((i for i in (self._text.find("\n{", at), self._text.find("\n[", at)) if i >= 0), default=-1)
        return len(self._text) if found < 0 else found + 1

    def _broken(self, error: json.JSONDecodeError) -> str:
        if error.pos >= len(self._text.rstrip()) - 1 or error.msg.startswith("Unterminated string"):
            return f"it is cut off in line {error.lineno}"
        return f"line {error.lineno}, column {error.colno} is not JSON ({error.msg})"

    def _odd(self, name: str) -> float:
        self._not_finite += 1
        return float(name)

    def _whole(self, digits: str) -> int | float | None:
        return int(digits) if len(digits) <= _MOST_DIGITS else self._real(digits)

    def _real(self, digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        self._not_finite += 1
        return None


def _text(data: bytes) -> tuple[str, str | None]:
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and b"\0" in data:
        return "", "is binary, no JSON"
    try:
        return data.decode(encoding), None
    except UnicodeDecodeError:
        return "", "is neither UTF-8 nor UTF-16 text, so no JSON"


def _no_json(text: str) -> str:
    if _PRINTED_TABLE in text:
        return "is what `vllm bench serve` prints; give the file that --save-result or --append-result writes"
    return "is no JSON"


def _trouble(broken: list[str], read: int) -> str | None:
    if not broken:
        return None
    more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
    kept = f"; {read} before or after it {'was' if read == 1 else 'were'} read" if read else ""
    return f"{broken[0]}{more}{kept}"
