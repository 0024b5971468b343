import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from store.errors import DamagedStore
from store.records import (
    AdapterRecord,
    DatasetRecord,
    EventRecord,
    ImportFileRecord,
    LaunchRecord,
    RunRecord,
    SampleRecord,
    ServerRecord,
    SessionRecord,
    TrainingRecord,
)
from store.rows import Record, encode, from_row, shape, to_row
from store.run_columns import RUN_COLUMNS
from store.writer import Writer
from tests.store.examples import (
    a_dataset,
    a_launch,
    a_run,
    a_sample,
    a_server,
    a_session,
    a_training,
    an_adapter,
    an_event,
    an_import_file,
)
from tuning.records import RUN_METRICS

TYPES: list[type[Record]] = [
    SessionRecord,
    ServerRecord,
    LaunchRecord,
    RunRecord,
    SampleRecord,
    EventRecord,
    ImportFileRecord,
    DatasetRecord,
    TrainingRecord,
    AdapterRecord,
]


@pytest.mark.parametrize("record_type", TYPES)
def test_a_table_has_exactly_the_columns_of_its_record(record_type: type[Record], writer: Writer) -> None:
    table = writer._connection.execute(f"PRAGMA table_info({shape(record_type).table})").fetchall()
    assert {column[1] for column in table} == set(shape(record_type).columns)
    metrics = set(RUN_COLUMNS) if record_type is RunRecord else set()
    nullable = {column[1] for column in table if not column[3]} - metrics - {"id"}
    optional = {field.name for field in fields(record_type) if field.default is None} - {"id"}
    assert nullable == optional


@pytest.mark.parametrize(
    "record",
    [
        a_session(),
        a_server(),
        a_launch(1),
        a_sample(),
        an_event(),
        an_import_file(),
        a_dataset(),
        a_training(),
        an_adapter(),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_survives_being_a_row(record: Any) -> None:
    assert from_row(type(record), to_row(record), Path("x.db")) == record


def test_a_run_reads_back_with_every_metric() -> None:
    run = from_row(RunRecord, to_row(a_run(1, 2)), Path("x.db"))
    assert tuple(run.metrics) == RUN_METRICS
    assert {name: value for name, value in run.metrics.items() if value is not None} == a_run(1, 2).metrics
    assert run.raw == {"completed": 300}


def test_what_is_not_finite_becomes_none() -> None:
    row = to_row(a_run(1, 2, metrics={"error_rate": math.nan}, raw={"itl": [1.0, math.inf, {"x": -math.inf}]}))
    assert row["error_rate"] is None
    assert row["raw"] == '{"itl":[1.0,null,{"x":null}]}'
    assert to_row(a_sample(waiting=math.nan))["waiting"] is None


def test_a_path_of_odd_bytes_is_kept_readable(writer: Writer) -> None:
    id = writer.insert(a_server(log_path="logs/\udcff.log", command=["\udcff", "ü"]))
    row = writer._connection.execute("SELECT log_path, command FROM server WHERE id = ?", (id,)).fetchone()
    assert row == ("logs/\\udcff.log", '["\\\\udcff","\\u00fc"]')


def test_an_unknown_field_or_metric_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="colour"):
        encode(ServerRecord, {"colour": "red"})
    with pytest.raises(ValueError, match="p95_ttft_ms"):
        to_row(a_run(1, 2, metrics={"p95_ttft_ms": 1.0}))


def test_a_column_that_is_not_json_is_damage() -> None:
    row = to_row(a_session(id=3)) | {"plan": '{"grid": '}
    with pytest.raises(DamagedStore, match=r"x\.db .*plan of session 3"):
        from_row(SessionRecord, row, Path("x.db"))


def test_a_sample_is_written_in_few_digits_and_reads_as_it_was() -> None:
    raw = {"histograms": {"ttft": {"sum": 4602.80492401, "count": 200.0, "corners": [[0.25, 0.0], [None, 200.0]]}}}
    text = to_row(a_sample(raw={**raw, "nan": math.nan, "big": 1e300}))["raw"]
    assert '"sum":4602.804924,"count":200,"corners":[[0.25,0],[null,200]]' in text
    read = json.loads(text)
    assert (read["nan"], read["big"]) == (None, 1e300)
    assert read["histograms"]["ttft"]["count"] == 200.0
    assert '"x":1.0' in to_row(a_run(1, 2, raw={"x": 1.0}))["raw"]


def test_a_server_s_address_has_an_ipv6_host_in_brackets() -> None:
    assert a_server(host="127.0.0.1", port=8000).address == "127.0.0.1:8000"
    assert a_server(host="::1", port=8001).url == "http://[::1]:8001"
