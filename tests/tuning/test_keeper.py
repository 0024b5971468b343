"""The keeper of a session, in this process, on a stand-in with vLLM's process tree: whatever way it ends, the rows say
so and nothing runs on."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.bench.client import Bench
from engine.keeper import port_lease
from engine.keeper.hold import only_keeper
from engine.launch.installation import find_vllm
from engine.processes.process import MARKER_VARIABLE, identify, marked
from engine.records import EngineError
from engine.samples.recorder import Recorder
from store.database import open_reader, open_writer
from store.errors import StoreFull
from store.location import database_file
from store.reader import Reader
from store.records import LaunchRecord, RunRecord, SessionRecord
from store.writer import Writer
from tests.engine.server_stand_in import own_port
from tests.faults.stand_in_vllm import make_installation, make_model
from tuning import sessions
from tuning.keeper import SessionKeeper
from tuning.plans.plan_file import read_plan
from tuning.sessions import create_session, session_plan, start_keeper
from tuning.sweeping.leftovers import close_session
from tuning.sweeping.on_finish import run_on_finish

PLAN = """
name = "kept"
model = "{model}"

[grid]
max-num-seqs = [2, 4]

[[workload]]
name = "chat"
dataset = "random"
input_len = 8
output_len = 4
requests = 4
warmup = 0
repeats = 2

[decide]
blocks = 1

[budget]
hours = 1
on_finish = "stop the pod"
"""
FROM_OUTSIDE = "the keeper was sent SIGTERM"


class Kept:
    """A session with its keeper, not at work yet."""

    def __init__(self, writer: Writer, reader: Reader, data_dir: Path, number: int) -> None:
        self.writer, self.reader, self.data_dir, self.number = writer, reader, data_dir, number
        session = reader.session(number)
        self.keeper = SessionKeeper(data_dir, session, session_plan(session, {}, os.environ), writer, reader)
        self.keeper.take_over()

    def session(self) -> SessionRecord:
        return self.reader.session(self.number)

    def states(self) -> tuple[list[str], list[str], list[str]]:
        """Of servers, launches and runs."""
        servers = self.reader.servers(session_id=self.number)
        launches, runs = self.reader.launches(self.number), self.reader.runs(self.number)
        return [each.state for each in servers], [each.state for each in launches], [each.state for each in runs]

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - a row has no event to wait for
                await asyncio.sleep(0.02)

    async def ask(self, command: str, **arguments: Any) -> Any:
        return await self.keeper.commands()[command](arguments)

    def processes(self) -> list[Any]:
        servers = self.reader.servers(session_id=self.number)
        markers = [self.session().raw["bench_marker"], *(server.marker for server in servers)]
        return [process for marker in markers for process in marked(marker)]


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with one waiting session, and the stand-in for vLLM in the environment."""
    _, environ = make_installation(tmp_path / "vllm")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(port_lease, "free_port", lambda host, start: own_port())
    text = PLAN.format(model=make_model(tmp_path / "model"))
    installation = find_vllm(str(tmp_path / "vllm" / "bin" / "vllm"), os.environ)
    assert create_session(tmp_path / "data", read_plan(text), text, installation) == 1
    return tmp_path / "data"


@pytest.fixture
def kept(data_dir: Path) -> Iterator[Kept]:
    path = database_file(data_dir)
    with open_writer(path) as writer, open_reader(path) as reader:
        yield Kept(writer, reader, data_dir, 1)


async def test_the_state_is_written_when_all_else_is(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[str] = []
    insert, update = kept.writer.insert, kept.writer.update

    def inserted(record: Any) -> int:
        writes.append(type(record).__name__)
        return insert(record)

    def updated(kind: Any, number: int, **fields: Any) -> None:
        writes.append(fields.get("state", ""))
        update(kind, number, **fields)

    monkeypatch.setattr(kept.writer, "insert", inserted)
    monkeypatch.setattr(kept.writer, "update", updated)
    await asyncio.wait_for(kept.keeper.work(), 60)
    assert writes[-2:] == ["EventRecord", "done"]
    assert kept.states() == (["stopped"] * 3, ["done"] * 3, ["done"] * 6)
    assert kept.session().raw["seconds_used"] > 0
    assert kept.keeper.on_finish == "stop the pod"
    assert not kept.processes()


async def test_told_to_end_before_it_began_it_starts_nothing(kept: Kept) -> None:
    kept.keeper.terminate(FROM_OUTSIDE)
    await asyncio.wait_for(kept.keeper.work(), 60)
    assert (kept.session().state, kept.session().message) == ("stopped", FROM_OUTSIDE)
    assert kept.states() == ([], [], [])
    assert kept.keeper.on_finish == ""


async def test_a_stop_while_paused_and_a_skip_while_paused(kept: Kept) -> None:
    working = asyncio.create_task(kept.keeper.work())
    await kept.until(lambda: "running" in kept.states()[2])
    await kept.ask("pause")
    await kept.until(lambda: kept.session().state == "paused")
    assert (await kept.ask("pause"))["message"] == "paused already"
    assert "stays up" in (kept.session().message or "")
    await kept.ask("skip", candidate=1)
    await asyncio.sleep(0.3)
    assert kept.session().state == "paused"
    await kept.ask("stop")
    await asyncio.wait_for(working, 60)
    assert (kept.session().state, kept.session().message) == ("stopped", "stopped, as asked")
    servers, launches, runs = kept.states()
    assert set(servers) == {"stopped"}
    assert {*launches, *runs} <= {"done", "abandoned"}
    assert not kept.processes()
    with pytest.raises(EngineError, match="has ended"):
        await kept.ask("add", settings={"max-num-seqs": 1})


async def test_the_budget_ends_a_pause_too(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.keeper.BUDGET_EVERY_S", 0.05)
    await kept.ask("pause")
    working = asyncio.create_task(kept.keeper.work())
    await kept.until(lambda: kept.session().state == "paused")
    kept.keeper._clock = lambda: 1e9
    await asyncio.wait_for(working, 60)
    assert kept.session().state == "stopped"
    assert "budget of 1 hours is used up" in (kept.session().message or "")
    assert kept.keeper.on_finish == "stop the pod"


async def test_a_stop_while_a_server_starts(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_LOAD_S", "30")
    working = asyncio.create_task(kept.keeper.work())
    await kept.until(lambda: any(server.pid for server in kept.reader.servers(session_id=1)))
    await kept.ask("stop")
    await asyncio.wait_for(working, 60)
    assert kept.session().state == "stopped"
    assert kept.states() == (["stopped"], ["abandoned"], [])
    assert not kept.processes()


async def test_a_stop_while_the_disk_is_full_ends_and_says_what_is_lost(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.keeper.journal.GIVE_UP_AFTER_S", 0.2)
    journal = kept.keeper._journal
    monkeypatch.setattr(journal, "end_within", lambda: type(journal).end_within(journal, 0.2))
    working = asyncio.create_task(kept.keeper.work())
    await kept.until(lambda: "running" in kept.states()[2])

    def full(*_: Any, **__: Any) -> None:
        raise StoreFull("no space is left")

    with monkeypatch.context() as filled:
        for name in ("insert", "update", "insert_samples"):
            filled.setattr(kept.writer, name, full)
        await kept.until(lambda: journal.blocked)
        assert "no space is left" in (await kept.ask("stop"))["message"]
        await asyncio.wait_for(working, 60)
        assert "session 1 stopped" in journal.lost
        assert any(what.startswith("run 1") for what in journal.lost)
        assert not kept.processes()
    assert kept.session().state == "running", "nobody could write that it ended"
    # With space again the next keeper closes what was left open and measures the run anew.
    again = Kept(kept.writer, kept.reader, kept.data_dir, kept.number)
    await asyncio.wait_for(again.keeper.work(), 60)
    assert again.session().state == "done"
    assert sorted(again.states()[2]) == ["abandoned", *["done"] * 6]
    assert not again.processes()


async def test_an_error_of_our_own_leaves_no_open_row_and_no_process(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Bench, "run", breaks)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(kept.keeper.work(), 60)
    assert kept.session().state == "failed"
    assert kept.states() == (["stopped"], ["abandoned"], ["abandoned"])
    assert kept.reader.runs(1)[0].reason == "ZeroDivisionError: a bug"
    assert kept.keeper.on_finish == "stop the pod"
    assert not kept.processes()


async def test_a_last_sample_that_fails_costs_no_result(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    take, taken = Recorder.take, []

    async def breaks_after_the_first_run(self: Recorder) -> None:
        taken.append(self.run_id)
        if self.run_id is not None and taken.count(self.run_id) > 1:
            raise ZeroDivisionError("a bug")
        await take(self)

    monkeypatch.setattr(Recorder, "take", breaks_after_the_first_run)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(kept.keeper.work(), 60)
    assert kept.states()[2] == ["done"]


def test_a_keeper_that_does_not_start_is_a_failed_session_with_its_line(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MODULE", "tuning.no_such_keeper")
    with pytest.raises(EngineError, match="did not start"):
        start_keeper(data_dir, 1)
    with open_reader(database_file(data_dir)) as reader:
        session = reader.session(1)
    assert session.state == "failed"
    assert "no_such_keeper" in (session.message or "")


def test_a_living_keeper_without_its_lock_is_not_doubled(data_dir: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        who = identify(other.pid)
        assert who is not None
        with open_writer(database_file(data_dir)) as writer:
            writer.update(
                SessionRecord, 1, state="running", keeper_pid=who.pid, keeper_start_ticks=who.start_ticks,
                boot_id=who.boot_id,
            )  # fmt: skip
        with pytest.raises(EngineError, match=f"kill {other.pid}"):
            start_keeper(data_dir, 1)
        with open_reader(database_file(data_dir)) as reader:
            assert reader.session(1).state == "running"
    finally:
        other.kill()
        other.wait()


def test_a_session_that_nothing_works_on_is_stopped_without_its_secrets(data_dir: Path) -> None:
    path = database_file(data_dir)
    with open_writer(path) as writer, open_reader(path) as reader:
        kept = Kept(writer, reader, data_dir, 1)
        marker = kept.session().raw["bench_marker"]
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={MARKER_VARIABLE: marker})
        launch_id = writer.insert(LaunchRecord(1, 0, 0, 0, 0, 1, "ready"))
        writer.insert(RunRecord(1, launch_id, 0, 0, 0, "chat", "measured", 0, 1, "running"))
        with only_keeper(data_dir, "session", 1), pytest.raises(EngineError, match="has a keeper"):
            close_session(data_dir, 1)
        close_session(data_dir, 1)
        assert not marked(marker)
        assert kept.session().state == "stopped"
        assert kept.states() == ([], ["abandoned"], ["abandoned"])
        writer.delete_session(1)


def test_the_command_at_the_end_is_waited_for_and_its_status_told(capfd: pytest.CaptureFixture[str]) -> None:
    run_on_finish("echo stopping; exit 3")
    run_on_finish("sleep 5", within_s=0.1)
    told = capfd.readouterr().out
    assert "stopping\n" in told
    assert "ended with status 3" in told
    assert "did not end within 0.1 s" in told
