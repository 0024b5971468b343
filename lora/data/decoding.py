"""The bytes of a file as text: byte order marks, line ends, and what is no text at all.

A byte that is not UTF-8 becomes a lone surrogate (PEP 383), so that only the record that holds it is lost.
"""

import codecs
import re
from dataclasses import dataclass

from lora.records import DataUnfit

_NOT_TEXT = (
    (b"PAR1", "Parquet", "read it with pandas and write `to_json(..., orient='records', lines=True)`"),
    (b"ARROW1", "Arrow", "load it with the datasets library and write `to_json(...)`"),
    (b"\x1f\x8b", "gzip", "unpack it with gunzip"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "unpack it with unzstd"),
    (b"\xfd7zXZ", "xz", "unpack it with unxz"),
    (b"BZh", "bzip2", "unpack it with bunzip2"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    (b"SQLite format 3", "an SQLite database", "write its rows as JSON lines"),
)
# UTF-32 before UTF-16: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text whose lines end with `\\n` alone, and one line each on what was done to it."""

    text: str
    notes: tuple[str, ...]


def decode(data: bytes) -> Decoded:
    """Raises DataUnfit for a file that is empty or no text."""
    for magic, name, remedy in _NOT_TEXT:
        if data.startswith(magic):
            raise DataUnfit(f"it is {name}, not JSON, JSON lines or CSV: {remedy}")
    notes: list[str] = []
    mark, codec, name = next((each for each in _MARKS if data.startswith(each[0])), (b"", "utf-8", ""))
    if name:
        notes.append(f"begins with the byte order mark of {name}")
    text = data[len(mark) :].decode(codec, "surrogateescape" if codec == "utf-8" else "replace")
    if "\0" in text[:4096]:
        raise DataUnfit(
            "it is no text, or UTF-16 without a byte order mark (it holds NUL bytes): "
            "give JSON, JSON lines or CSV in UTF-8"
        )
    if not text.strip():
        raise DataUnfit("it is empty")
    if "\r" in text:
        both, alone = text.count("\r\n"), text.count("\r") - text.count("\r\n")
        lines = text.count("\n") - both
        ends = [word for word, number in (("CRLF", both), ("CR", alone), ("LF", lines)) if number]
        notes.append(f"lines end with {' and '.join(ends)}")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    bad = _ESCAPED_BYTE.findall(text)
    if bad:
        notes.append(f"{len(bad):,} bytes are not UTF-8{_guess(data)}")
    return Decoded(text, tuple(notes))


def _guess(data: bytes) -> str:
    """Western text of Windows has its letters above 0xC0 alone among ASCII, and decodes as such."""
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return ""
    return ": if it was saved as Windows-1252, `iconv -f cp1252 -t utf-8` makes it so"


def has_surrogate(text: str) -> bool:
    """Whether the text holds half a character: a byte that was not UTF-8, or an escape like `\\ud83d` alone."""
    return _SURROGATE.search(text) is not None


def has_bad_byte(text: str) -> bool:
    return _ESCAPED_BYTE.search(text) is not None
