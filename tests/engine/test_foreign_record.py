"""Servers that are not ours, recorded: a history, and nothing that ours are ended or restarted by."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.samples.foreign_record import ForeignRecords
from store.database import open_reader, open_writer
from store.errors import DamagedStore, StoreFull
from store.reader import Reader
from store.records import SampleRecord
from store.writer import Writer

URL = "http://user:secret@10.0.0.5:8000"
Store = tuple[Writer, Reader]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    path = tmp_path / "llmtune.db"
    with open_writer(path) as writer, open_reader(path) as reader:
        yield writer, reader


def sample(second: int, error: str | None = None) -> SampleRecord:
    raw = {"error": error} if error else {"model_name": "/models/[x]", "version": "0.32.0", "kv_cache_tokens": 34496.0}
    return SampleRecord(f"2026-11-30T10:00:{second:02}.000Z", running=float(second), raw=raw)


def test_a_row_from_the_first_answer_on_with_all_samples(store: Store) -> None:
    writer, reader = store
    records = ForeignRecords(writer)
    records.keep(URL, sample(0, error="Nothing answers."))
    assert reader.servers() == []
    for second in (1, 2, 3):
        records.keep(URL, sample(second))
    records.keep(URL, sample(4, error="Nothing answers."))
    records.keep(URL, sample(4))  # not newer
    (server,) = reader.servers()
    assert (server.name, server.model, server.vllm_version) == ("[x]", "/models/[x]", "0.32.0")
    assert (server.host, server.port, server.facts) == ("10.0.0.5", 8000, {"kv_cache_tokens": 34496.0})
    assert (server.started_at, server.ready_at, server.stopped_at) == (sample(0).at, sample(1).at, sample(4).at)
    assert "secret" not in str(server.raw)
    assert [one.at for one in reader.samples(server_id=server.id)] == [sample(second).at for second in range(5)]
    assert records.trouble is None


def test_it_is_never_taken_for_a_server_of_ours(store: Store) -> None:
    writer, reader = store
    ForeignRecords(writer).keep(URL, sample(1))
    (server,) = reader.servers()
    assert reader.servers(active=True) == []
    assert (server.pid, server.marker, server.command, server.descendants, server.keeper_pid) == (
        None,
        "",
        [],
        [],
        None,
    )


def test_each_address_has_its_own_row(store: Store) -> None:
    writer, reader = store
    records = ForeignRecords(writer)
    for url in ("http://a:1", "http://b:2", "https://c"):
        records.keep(url, sample(1))
    assert [(server.host, server.port) for server in reader.servers()] == [("a", 1), ("b", 2), ("c", 443)]


def test_samples_wait_for_a_store_that_takes_nothing_now(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = store
    records = ForeignRecords(writer)
    records.keep(URL, sample(1))
    with monkeypatch.context() as patched:

        def full(samples: object) -> None:
            raise StoreFull("the disk is full")

        patched.setattr(writer, "insert_samples", full)
        records.keep(URL, sample(2))
        assert records.trouble == "the disk is full"
    records.keep(URL, sample(3))
    assert records.trouble is None
    assert len(reader.samples(server_id=1)) == 3


def test_a_damaged_store_is_not_tried_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, _ = store
    records = ForeignRecords(writer)
    tried = []

    def damaged(record: object) -> int:
        tried.append(record)
        raise DamagedStore("the database is damaged")

    monkeypatch.setattr(writer, "insert", damaged)
    for second in (1, 2, 3):
        records.keep(URL, sample(second))
    assert (records.trouble, len(tried)) == ("the database is damaged", 1)
