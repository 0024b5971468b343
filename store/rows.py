"""A record as a row and back, once for all tables, by the fields of the dataclasses.

Fields of type dict or list are JSON text; the metrics of a run are a column each. What is not finite becomes None,
since neither SQLite nor JSON has a NaN; what is not Unicode (a path of odd bytes) is escaped.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

from store.errors import damaged
from store.evaluation_job import EvaluationJobRecord
from store.records import (
    AdapterRecord,
    DatasetRecord,
    EvaluationRecord,
    EventRecord,
    ImportFileRecord,
    LaunchRecord,
    RunRecord,
    SampleRecord,
    ServerRecord,
    SessionRecord,
    TrainingRecord,
)
from store.run_columns import RUN_COLUMNS

Record = (
    SessionRecord
    | LaunchRecord
    | RunRecord
    | SampleRecord
    | EventRecord
    | ServerRecord
    | ImportFileRecord
    | DatasetRecord
    | TrainingRecord
    | AdapterRecord
    | EvaluationRecord
    | EvaluationJobRecord
)
_EXACT = 2.0**53  # below it every whole number is a float
R = TypeVar(
    "R",
    SessionRecord,
    LaunchRecord,
    RunRecord,
    SampleRecord,
    EventRecord,
    ServerRecord,
    ImportFileRecord,
    DatasetRecord,
    TrainingRecord,
    AdapterRecord,
    EvaluationRecord,
    EvaluationJobRecord,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a record type lies in its table. `spread` is the dict field that is a column for each of `spread_columns`."""

    table: str
    plain: tuple[str, ...]
    json: tuple[str, ...]
    spread: str | None
    spread_columns: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.plain + self.json + self.spread_columns


def shape(record_type: type[Record]) -> Shape:
    """The shape of `record_type`; its table is called like the class (`import_file`)."""
    return _SHAPES[record_type]


def _shape_of(record_type: type[Record], spread: str | None = None, spread_columns: tuple[str, ...] = ()) -> Shape:
    hints = get_type_hints(record_type)
    names = [field.name for field in fields(record_type) if field.name != spread]
    as_json = tuple(name for name in names if get_origin(hints[name]) in (dict, list))
    return Shape(
        table=re.sub(r"\B(?=[A-Z])", "_", record_type.__name__.removesuffix("Record")).lower(),
        plain=tuple(name for name in names if name not in as_json),
        json=as_json,
        spread=spread,
        spread_columns=spread_columns,
    )


_SHAPES: Mapping[type[Record], Shape] = {
    SessionRecord: _shape_of(SessionRecord),
    ServerRecord: _shape_of(ServerRecord),
    LaunchRecord: _shape_of(LaunchRecord),
    RunRecord: _shape_of(RunRecord, "metrics", RUN_COLUMNS),
    SampleRecord: _shape_of(SampleRecord),
    EventRecord: _shape_of(EventRecord),
    ImportFileRecord: _shape_of(ImportFileRecord),
    DatasetRecord: _shape_of(DatasetRecord),
    TrainingRecord: _shape_of(TrainingRecord),
    AdapterRecord: _shape_of(AdapterRecord),
    EvaluationRecord: _shape_of(EvaluationRecord),
    EvaluationJobRecord: _shape_of(EvaluationJobRecord),
}


def to_row(record: Record) -> dict[str, Any]:
    """Column → value for a whole record, with every column; metrics that the record lacks are None."""
    row: dict[str, Any] = dict.fromkeys(shape(type(record)).columns)
    return row | encode(type(record), {field.name: getattr(record, field.name) for field in fields(record)})


def encode(record_type: type[Record], values: Mapping[str, Any]) -> dict[str, Any]:
    """Column → value for some fields of a record. Raises ValueError for a field or a metric that does not exist."""
    known = shape(record_type)
    row: dict[str, Any] = {}
    for name, value in values.items():
        if name == known.spread:
            if unknown := set(value) - set(known.spread_columns):
                raise ValueError(f"{known.table} has no column for {', '.join(sorted(unknown))}")
            row.update({column: storable(number) for column, number in value.items()})
        elif name in known.json:
            kept = short(value) if record_type is SampleRecord else storable(value)
            row[name] = json.dumps(kept, allow_nan=False, separators=(",", ":"))
        elif name in known.plain:
            row[name] = storable(value)
        else:
            raise ValueError(f"{record_type.__name__} has no field {name}")
    return row


def from_row(record_type: type[R], row: Mapping[str, Any], path: Path) -> R:
    """The record of a row; a JSON column that was not asked for reads as empty. Raises DamagedStore, naming the
    database `path`, where a column does not hold JSON."""
    known = shape(record_type)
    values: dict[str, Any] = {name: row[name] for name in known.plain}
    for name in known.json:
        if name not in row:
            continue
        try:
            values[name] = json.loads(row[name])
        except (ValueError, TypeError) as error:
            raise damaged(path, f"{name} of {known.table} {row['id']} is not JSON") from error
    if known.spread:
        values[known.spread] = {column: row[column] for column in known.spread_columns}
    return record_type(**values)


def short(value: Any) -> Any:
    """As `storable`, with each number in as few digits as it needs: `40` for 40.0, and microseconds for seconds. Takes
    a fifth off the JSON of a sample, of which there are many; elsewhere a float that was written as one stays one."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < _EXACT else round(value, 6)
    if isinstance(value, dict):
        return {key: short(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [short(item) for item in value]
    return storable(value)


def storable(value: Any) -> Any:
    """`value` with each float in it that is not finite replaced by None, and lone surrogates escaped (`\\udc80`);
    tuples become lists."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


class Remembered:
    """Records by their rows: for a row that reads as it did, the record that was made of it then. Most rows do not
    change while they are looked at once a second, and their JSON is what takes long. Nobody may change what the fields
    of such a record hold."""

    def __init__(self) -> None:
        self._known: dict[tuple[type[Record], int], tuple[tuple[Any, ...], Any]] = {}

    def from_row(self, record_type: type[R], row: Mapping[str, Any], path: Path) -> R:
        """As the function of that name."""
        key, values = (record_type, row["id"]), tuple(row.values())
        known = self._known.get(key)
        if known is None or known[0] != values:
            known = self._known[key] = (values, from_row(record_type, row, path))
        record: R = known[1]
        return record
