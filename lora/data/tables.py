"""CSV as records: the separator is told by the header, and a record begins on a line of the file, not on a row's
number: quoted fields run over several lines."""

import csv
import io
from dataclasses import dataclass

from lora.data.records import Fault, Record
from lora.records import DataUnfit

SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_LONGEST_FIELD = 1 << 27  # characters; csv stops at 131,072 by default, which one long answer exceeds


@dataclass(frozen=True, slots=True)
class Table:
    records: tuple[Record, ...]
    faults: tuple[Fault, ...]
    header: tuple[str, ...]
    separator: str


def separator_of(text: str) -> str | None:
    """That at which the header falls into the most fields; None where it is one field whatever it is split at."""
    numbers = {mark: len(_header(text, mark)) for mark in SEPARATORS}
    best = max(numbers, key=lambda mark: numbers[mark])
    return best if numbers[best] > 1 else None


def _header(text: str, mark: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text, newline="\n"), delimiter=mark), [])
    except csv.Error:
        return []


def parse_table(text: str, mark: str) -> Table:
    """Raises DataUnfit where the header names a field twice, or one not at all."""
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(io.StringIO(text, newline="\n"), delimiter=mark, strict=True)
    header = [name.strip() for name in next(rows)]
    named = [name for name in header if name]
    if len(set(named)) < len(named):
        raise DataUnfit(f"its header names a field twice ({', '.join(header)}): give each a name of its own")
    records: list[Record] = []
    faults: list[Fault] = []
    line = rows.line_num + 1
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            faults.append(Fault(line, "cut_off", _why(error)))
            break
        if not row or not any(cell.strip() for cell in row):
            pass
        elif len(row) != len(header):
            faults.append(Fault(line, "columns", f"{len(row)} in place of {len(header)}"))
        else:
            # A column without a name is an index that pandas wrote.
            records.append(Record(line, {name: cell for name, cell in zip(header, row, strict=True) if name}))
        line = rows.line_num + 1
    return Table(tuple(records), tuple(faults), tuple(header), mark)


def _why(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text:
        return "a quoted field does not end"
    return "a quoted field goes on behind its end" if "expected after" in text else text
