"""A file as records. What it is, is told by its content: names lie (`data.json` of JSON lines is common)."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.data.decoding import decode
from lora.data.forms import form_of
from lora.data.json_values import Values, fields, parse_lines, parse_list, parse_stream
from lora.data.records import Container, Contents
from lora.data.tables import SEPARATORS, parse_table, separator_of
from lora.records import DataUnfit

LARGEST = 2 << 30  # bytes; a file is read whole


def read_file(path: Path) -> tuple[bytes, str]:
    """The bytes of a file and their SHA-256. Raises DataUnfit with the file's name and what to do."""
    try:
        if path.is_dir():
            raise DataUnfit(f"{path} is a folder: name a file in it")
        if (size := path.stat().st_size) > LARGEST:
            raise DataUnfit(f"{path} has {size / 2**30:.1f} GiB: give a part of it of 2 GiB at most")
        data = path.read_bytes()
    except OSError as error:
        raise DataUnfit(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    return data, hashlib.sha256(data).hexdigest()


def contents_of(data: bytes) -> Contents:
    """The records in the bytes of a file. Raises DataUnfit where it is neither JSON nor CSV."""
    decoded = decode(data)
    text = decoded.text
    begin = text.lstrip()[:1]
    if begin == "[":
        values = parse_list(text, text.index("["), alone=True)
        return Contents("json", values.records, values.faults, decoded.notes)
    if begin == "{":
        contents = _objects(text)
        return replace(contents, notes=(*decoded.notes, *contents.notes))
    mark = separator_of(text)
    if mark is None:
        raise DataUnfit(
            f"it is neither JSON nor CSV (it begins with “{clean(text.strip(), 40)}”): "
            "give a JSON list, a JSON object a line, or CSV with a header"
        )
    table = parse_table(text, mark)
    notes = (*decoded.notes, f"fields parted by {SEPARATORS[mark]}s: {clean(', '.join(table.header), 120)}")
    return Contents("csv", table.records, table.faults, notes)


def _objects(text: str) -> Contents:
    """JSON lines, one object, or objects over several lines each."""
    filled = [line for line in text.split("\n") if line.strip()]
    if len(filled) > 1 and _parses(filled[0]):
        return _from("jsonl", parse_lines(text))
    if _parses(text):
        return _one_object(text)
    lines, stream = parse_lines(text), parse_stream(text)
    # A broken first line among whole ones, or objects that are written over several lines.
    if len(lines.records) * 2 >= len(filled):
        return _from("jsonl", lines)
    return _from("json", stream, ("objects that follow each other without a list around them",))


def _one_object(text: str) -> Contents:
    """A file that is one object: a record itself, or with the records in a list of one of its fields."""
    every = list(fields(text))
    lists = {name: (len(value), place) for name, place, value in every if _objects_in(value)}
    if not lists or form_of({name: value for name, _, value in every}) is not None:
        return _from("json", parse_stream(text))
    name = next((name for name in ("train", "data") if name in lists), max(lists, key=lambda name: lists[name][0]))
    others = [f"“{clean(other, 40)}” ({lists[other][0]:,})" for other in lists if other != name]
    left = f"; left alone: {', '.join(others)}" if others else ""
    return _from("json", parse_list(text, lists[name][1]), (f"records taken from its field “{clean(name, 40)}”{left}",))


def _objects_in(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def _parses(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _from(container: Container, values: Values, notes: tuple[str, ...] = ()) -> Contents:
    return Contents(container, values.records, values.faults, notes)
