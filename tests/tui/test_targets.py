"""Whom `snapshot` looks at, and where it knows their settings from."""

from pathlib import Path

import pytest

from engine.discovery import FoundServer
from store.database import open_writer
from store.records import SampleRecord, ServerRecord
from tui.commands.targets import named, unnamed

SAMPLE = SampleRecord("2026-11-30T10:00:00.000Z")
HERE = (FoundServer("http://127.0.0.1:8200", 1, {"max-num-seqs": 7}), FoundServer("http://127.0.0.1:8201", 2))


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.commands.targets.found_servers", lambda: HERE)


def ready(name: str, port: int, at: str | None, host: str = "127.0.0.1", state: str = "ready") -> ServerRecord:
    raw = {"spec": {"flags": {"max-num-seqs": port}}}
    return ServerRecord(name, state, "m", host, port, [], {}, "", "m", ready_at=at, raw=raw)  # type: ignore[arg-type]


def test_our_server_that_became_ready_last_is_meant(tmp_path: Path) -> None:
    assert [one.url for one in unnamed(tmp_path)] == ["http://127.0.0.1:8200", "http://127.0.0.1:8201"]
    with open_writer(tmp_path / "llmtune.db") as writer:
        writer.insert(ready("a", 9001, "2026-11-30T10:00:02.000Z", host="::1"))
        writer.insert(ready("b", 9002, "2026-11-30T10:00:01.000Z"))
        writer.insert(ready("c", 9003, "2026-11-30T10:00:03.000Z", state="stopped"))
    (own,) = unnamed(tmp_path)
    assert own.url == "http://[::1]:9001"
    seqs = own.knobs(SAMPLE).max_num_seqs
    assert seqs is not None
    assert seqs.value == 9001


def test_a_named_server_of_this_machine_has_the_flags_of_its_command_line() -> None:
    local, other, remote = named(("http://localhost:8200", "http://127.0.0.1:8300", "http://192.0.2.7:8200"))
    seqs = local.knobs(SAMPLE).max_num_seqs
    assert seqs is not None
    assert seqs.value == 7
    for stranger in (other, remote):
        unknown = stranger.knobs(SAMPLE).max_num_seqs
        assert unknown is None or unknown.value != 7
