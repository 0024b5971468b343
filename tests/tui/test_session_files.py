"""Deleting a session never loses sight of what runs."""

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from engine.keeper.hold import only_keeper
from engine.processes.process import MARKER_VARIABLE, marked
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.errors import NotFound, StoreError, StoreFull
from store.location import database_file
from store.records import RunRecord, ServerRecord, SessionRecord
from store.writer import Writer
from tests.tui.recorded import record
from tui.sessions.session_files import delete, export


@pytest.fixture
def marker() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def paused(tmp_path: Path, marker: str) -> int:
    """A paused session whose keeper is gone, and whose server stayed up."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={**os.environ, MARKER_VARIABLE: marker})
    with open_writer(database_file(tmp_path)) as writer:
        number = writer.insert(SessionRecord("s", "paused", "", {}, [], 1, utc_now()))
        writer.insert(ServerRecord("s", "ready", "m", "127.0.0.1", 8999, [], {}, "", marker, session_id=number))
    return number


def test_what_a_deleted_session_left_running_is_ended(
    tmp_path: Path, paused: int, marker: str, capfd: pytest.CaptureFixture[str]
) -> None:
    delete(tmp_path, paused)
    assert capfd.readouterr().out == "", "the screens own the terminal"
    assert not marked(marker)
    with open_reader(database_file(tmp_path)) as reader, pytest.raises(NotFound):
        reader.session(paused)


def test_a_full_disk_keeps_the_session_and_says_so(
    tmp_path: Path, paused: int, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StoreFull("no space is left")

    monkeypatch.setattr(Writer, "update", full)
    with pytest.raises(StoreError, match="no space is left"):
        delete(tmp_path, paused)
    assert not marked(marker)
    with open_reader(database_file(tmp_path)) as reader:
        assert reader.session(paused).state == "paused"


def test_a_paused_session_with_a_living_keeper_is_not_deleted(tmp_path: Path, paused: int, marker: str) -> None:
    with only_keeper(tmp_path, "session", paused), pytest.raises(StoreError, match="stop it first"):
        delete(tmp_path, paused)
    assert marked(marker)
    delete(tmp_path, paused)


@pytest.mark.parametrize("form", ["md", "html"])
def test_a_report_has_the_evidence_of_what_was_rejected(tmp_path: Path, form: str) -> None:
    """It lies in raw results, which a report reads of no other run."""
    record(tmp_path)
    reason = "the load generator was late by 80 ms (p99); leave it a free core"
    evidence = [{"check": "client", "rejects": True, "reason": reason, "numbers": {"client_lag_p99_ms": 81.25}}]
    with open_reader(database_file(tmp_path)) as reader, open_writer(database_file(tmp_path)) as writer:
        run = next(run for run in reader.runs(1) if run.kind == "measured")
        assert run.id is not None
        writer.update(RunRecord, run.id, state="rejected", reason=reason, raw={"evidence": evidence})
    text = export(tmp_path, 1, form).read_text(encoding="utf-8")
    assert "client lag p99 ms 81.25" in text.replace("\\", "")
    assert reason in text.replace("\\", "")
