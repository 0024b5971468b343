"""The whole: what cannot be read is a warning and never a crash; what is left over is found; one real run."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.keeper.lock import KeeperLock
from engine.keeper.places import keeper_places
from engine.preflight.bounded import Probe, Unread
from engine.preflight.check import Check
from engine.preflight.doctor import Readings, examine, judge
from engine.preflight.lora_work import OurWork
from engine.preflight.ours import OurServer, OurSession, OursReading, ours_checks, read_ours
from engine.preflight.places import Place
from engine.preflight.terminal import TerminalReading
from engine.processes.process import MARKER_VARIABLE, boot_id, identify
from store.database import open_writer
from store.location import database_file
from store.records import EventRecord, ServerRecord, SessionRecord

HUNG = Unread("it did not answer in time")
NOW = datetime(2026, 11, 30, tzinfo=UTC)
PLAIN = TerminalReading("utf-8", None, {})


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(tmp_path / "run"))


def test_a_probe_that_fails_or_hangs_is_an_answer() -> None:
    def fails() -> None:
        raise OSError("transport endpoint is not connected \x1b[31m")

    began = time.monotonic()
    assert Probe(fails).answer(began + 5) == Unread("transport endpoint is not connected ")
    assert Probe(lambda: time.sleep(60)).answer(began + 0.1) == HUNG
    assert Probe(lambda: 3).answer(began + 5) == 3
    assert time.monotonic() - began < 3


def test_what_hangs_does_not_keep_the_program(tmp_path: Path) -> None:
    code = "import time; from engine.preflight.bounded import Probe; Probe(lambda: time.sleep(60)).answer(0.0)"
    subprocess.run([sys.executable, "-c", code], timeout=20, check=True)


def test_nothing_that_is_unread_breaks_the_rest() -> None:
    place = Place("data", Path("/dead/mount"), "--data-dir")
    readings = Readings(HUNG, HUNG, HUNG, HUNG, ((place, HUNG),), HUNG, HUNG, HUNG, PLAIN, NOW, NOW, False)
    checks = judge(readings)
    unread = [check for check in checks if "did not answer" in check.found]
    assert {check.state for check in unread} == {"warning"}
    assert [check.name for check in unread] == [
        "vLLM", "GPU", "memory", "disk: data directory", "tools", "limits", "ports", "servers",
    ]  # fmt: skip
    assert "/dead/mount" in unread[3].found


def test_secrets_and_escapes_of_the_machine_are_not_shown() -> None:
    ours = OursReading((OurServer(1, "x\x1b[2J hf_abcdefghijklmnopqrstuvwxyz0123", None, True, (7,), False),))
    readings = Readings(HUNG, HUNG, HUNG, HUNG, (), HUNG, HUNG, ours, PLAIN, NOW, NOW, False)
    text = " ".join(check.found + check.advice for check in judge(readings))
    assert "hf_" not in text
    assert "\x1b" not in text


LEFT = OurServer(3, "chat", None, True, (41, 42), False)
STILL = OurSession(14, "night", "running", False)


@pytest.mark.parametrize(
    ("reading", "states", "told"),
    [
        (OursReading(), ["ok", "ok"], "none of ours runs"),
        (OursReading((replace(LEFT, kept=True),), (replace(STILL, kept=True),)), ["ok", "ok"], "1 of ours run"),
        (OursReading((replace(LEFT, pids=()),)), ["ok", "ok"], "nothing of it is left"),
        (OursReading((LEFT,)), ["warning", "ok"], "llmtune server stop 3"),
        (OursReading((replace(LEFT, active=False),)), ["warning", "ok"], "kill 41 42"),
        (OursReading((replace(LEFT, session_id=14),)), ["warning", "ok"], "llmtune resume 14"),
        (OursReading(sessions=(STILL,)), ["ok", "warning"], "llmtune resume 14"),
        (OursReading(sessions=(replace(STILL, kept=True, blocked="no space"),)), ["ok", "warning"], "waits: no space"),
        (OursReading(sessions=(replace(STILL, state="paused", kept=True, message="full"),)), ["ok", "warning"], "full"),
        (OursReading(lora=(OurWork("training", 4, "a", (), True),)), ["ok", "ok", "ok"], "1 under way"),
        (
            OursReading(lora=(OurWork("training", 4, "a", (7,), False),)),
            ["ok", "ok", "warning"],
            "computes on as pid 7",
        ),
        (OursReading(lora=(OurWork("training", 4, "a", (), False),)), ["ok", "ok", "warning"], "llmtune lora resume 4"),
        (
            OursReading(lora=(OurWork("evaluation", 4, "a@1", (), False), OurWork("training", 5, "a", (), True))),
            ["ok", "ok", "warning", "ok"],
            "llmtune lora resume eval:4",
        ),
    ],
)
def test_servers_sessions_and_trainings_of_ours(reading: OursReading, states: list[str], told: str) -> None:
    checks = ours_checks(reading)
    assert [check.state for check in checks] == states
    assert told in " ".join(f"{check.found} {check.advice}" for check in checks)


def test_a_real_server_without_a_keeper_is_found_by_mark_and_by_record(tmp_path: Path) -> None:
    marked = subprocess.Popen(["sleep", "60"], env={MARKER_VARIABLE: "mark-a", "PATH": os.environ["PATH"]})
    stranger = subprocess.Popen(["sleep", "60"], env={MARKER_VARIABLE: "mark-x", "PATH": os.environ["PATH"]})
    recorded = subprocess.Popen(["sleep", "60"])
    try:
        identity = identify(recorded.pid)
        assert identity is not None
        row = ServerRecord("a", "ready", "m", "127.0.0.1", 8000, [], {}, "", "mark-a")
        session = SessionRecord("s", "running", "", {}, [], 1, "2026-11-30T10:00:00.000Z")
        with open_writer(database_file(tmp_path)) as writer:
            first = writer.insert(row)
            second = writer.insert(
                replace(row, marker="b", pid=recorded.pid, start_ticks=identity.start_ticks, boot_id=boot_id())
            )
            writer.insert(replace(row, marker="c", pid=recorded.pid, start_ticks=1, boot_id=boot_id()))
            writer.insert(replace(row, marker="d", state="stopped"))
            still, kept = writer.insert(session), writer.insert(session)
            writer.insert(replace(session, state="done"))
            writer.insert(EventRecord("2026-11-30T11:00:00.000Z", "info", "ready"))
        lock = KeeperLock.acquire(keeper_places(tmp_path, "session", kept).lock)
        assert lock is not None
        try:
            found = read_ours(tmp_path)
        finally:
            lock.release()
        assert {server.id: server.pids for server in found.servers} == {
            first: (marked.pid,), second: (recorded.pid,), second + 1: (),
        }  # fmt: skip
        assert not any(server.kept for server in found.servers)
        assert {session.id: (session.kept, session.blocked) for session in found.sessions} == {
            still: (False, None), kept: (True, "its keeper does not answer"),
        }  # fmt: skip
        assert stranger.pid in found.strangers
        assert found.newest == "2026-11-30T11:00:00.000Z"
        names = found.names()
        assert "our server" in names[marked.pid]
        assert "another data directory" in names[stranger.pid]
    finally:
        for process in (marked, stranger, recorded):
            process.kill()
            process.wait()


def test_this_machine_is_examined_in_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    checks = examine(tmp_path / "data", "--data-dir", None, PLAIN, os.environ)
    assert time.monotonic() - began < 6
    names = [check.name for check in checks]
    assert names[0] == "vLLM"
    assert {"memory", "disk: data directory", "disk: model cache", "compiler", "ninja", "clock", "servers"} <= set(
        names
    )
    assert all(isinstance(check, Check) and check.found for check in checks)
    assert all(check.advice for check in checks if check.state == "warning")
    assert {"vllm", "torch"}.isdisjoint(sys.modules)
