"""A server and its row together: whatever happens, no process is left and the row says what became of it."""

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.keeper.journal import Journal
from engine.leftovers import end_leftover_server
from engine.processes.process import marked
from engine.records import LaunchFailed
from engine.server import Server
from engine.supervise import Supervised
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.errors import DamagedStore
from store.reader import Reader
from store.records import ServerRecord
from store.writer import Writer
from tests.engine.server_stand_in import own_port, stand_in, stand_in_spec


@dataclass
class Row:
    """A database with one server's row, and the stand-in that it is about."""

    writer: Writer
    reader: Reader
    folder: Path
    marker: str
    number: int = 0

    def __post_init__(self) -> None:
        self.installation = stand_in(self.folder)
        self.journal = Journal(self.writer)
        record = ServerRecord(
            "s",
            "starting",
            "m",
            "127.0.0.1",
            8600,
            [],
            {},
            str(self.folder / "s.log"),
            self.marker,
            started_at=utc_now(),
        )
        self.number = self.writer.insert(record)

    async def start(self, mode: str = "gentle", port: int | None = None) -> Supervised:
        spec = stand_in_spec(self.folder, mode, port)
        return await Supervised.start(
            self.journal, self.number, self.installation, spec, self.folder / "s.log", self.marker
        )

    def now(self) -> ServerRecord:
        return self.reader.server(self.number)


@pytest.fixture
def row(tmp_path: Path) -> Iterator[Row]:
    path = tmp_path / "llmtune.db"
    with open_writer(path) as writer, open_reader(path) as reader:
        yield Row(writer, reader, tmp_path, uuid.uuid4().hex)


async def test_a_life_from_start_to_stop_is_written(row: Row) -> None:
    supervised = await row.start()
    assert row.now().pid == supervised.server.identity.pid
    await supervised.wait_ready(20)
    ready = row.now()
    assert (ready.state, ready.facts["kv_cache_tokens"], len(ready.descendants)) == ("ready", 18176, 1)
    # A command line that a person copies with its environment must not make their processes ours.
    assert row.marker not in str(ready.env)
    await asyncio.gather(supervised.stop(), supervised.stop())
    assert (row.now().state, row.now().failure) == ("stopped", None)
    assert not marked(row.marker)


async def test_a_server_that_died_stays_failed_when_it_is_stopped(row: Row) -> None:
    supervised = await row.start("gentle dies")
    with pytest.raises(LaunchFailed):
        await supervised.wait_ready(20)
    await supervised.stop()
    ended = row.now()
    assert (ended.state, ended.exit_code) == ("failed", 1)
    assert ended.failure is not None
    assert not marked(row.marker)


async def test_a_failure_whose_writing_was_cut_short_is_written_at_the_stop(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised = await row.start("gentle dies")
    update = row.journal.update

    async def blocked(kind: Any, number: int, **fields: Any) -> None:
        if fields.get("state") == "failed":
            await asyncio.sleep(60)
        await update(kind, number, **fields)

    with monkeypatch.context() as full:
        full.setattr(row.journal, "update", blocked)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(supervised.wait_ready(20), 1.5)
    await supervised.stop()
    assert (row.now().state, row.now().exit_code) == ("failed", 1)


async def test_a_port_taken_between_is_told_apart(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.processes.ports._ANSWER_WITHIN_S", 0.2)  # it takes connections and says nothing
    port = own_port()
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", port):
        with pytest.raises(LaunchFailed) as raised:
            await row.start(port=port)
    assert raised.value.failure_class == "port_in_use"
    assert (row.now().state, row.now().failure_class) == ("failed", "port_in_use")


async def test_a_store_that_breaks_at_the_start_leaves_no_process(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise DamagedStore("the file is damaged")

    monkeypatch.setattr(row.writer, "update", broken)
    with pytest.raises(DamagedStore):
        await row.start()
    assert not marked(row.marker)


async def test_a_start_cancelled_while_the_store_waits_leaves_no_process(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = asyncio.Event()

    async def update(*_: Any, **fields: Any) -> None:
        if "pid" in fields:
            waiting.set()
            await asyncio.sleep(60)

    monkeypatch.setattr(row.journal, "update", update)
    starting = asyncio.create_task(row.start())
    await asyncio.wait_for(waiting.wait(), 10)
    for _ in range(1000):  # it is there before the kernel has set up its environment
        if marked(row.marker):
            break
        await asyncio.sleep(0.01)
    assert marked(row.marker)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not marked(row.marker)


async def test_a_stop_that_is_cancelled_goes_to_its_end(row: Row) -> None:
    supervised = await row.start("serves")
    await supervised.wait_ready(20)
    stopping = asyncio.create_task(supervised.stop(0.5))  # its child heeds no SIGTERM
    for _ in range(3):
        await asyncio.sleep(0.05)
        stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert not marked(row.marker)
    assert row.now().state == "stopped"


async def test_what_a_killed_keeper_left_is_ended_and_its_port_free(row: Row) -> None:
    supervised = await row.start()
    await supervised.wait_ready(20)
    readings: list[float] = []

    def used() -> float:
        readings.append(1.0)
        return 1.0

    told = await end_leftover_server(row.journal, row.now(), used)
    assert "2 processes ended" in told
    assert readings, "the GPU memory is waited for"
    assert row.now().state == "stopped"
    assert not marked(row.marker)
    assert "was gone already" in await end_leftover_server(row.journal, row.now())


async def test_a_server_of_an_earlier_boot_is_not_taken_for_ours(row: Row) -> None:
    supervised = await row.start()
    try:
        other = ServerRecord(
            "old", "ready", "m", "127.0.0.1", 8600, [], {}, "", "nobody's", pid=supervised.server.identity.pid,
            start_ticks=supervised.server.identity.start_ticks, boot_id="another boot",
        )  # fmt: skip
        number = row.writer.insert(other)
        assert "was gone already" in await end_leftover_server(row.journal, row.reader.server(number))
        assert supervised.server.poll() is None
    finally:
        await supervised.stop()


async def test_a_server_that_cannot_be_ended_is_said_to_have_failed(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    supervised = await row.start()
    real = Server.stop

    async def refused(*_: Any, **__: Any) -> None:
        raise LaunchFailed("process 1 belongs to another user")

    monkeypatch.setattr(Server, "stop", refused)
    with pytest.raises(LaunchFailed):
        await supervised.stop()
    assert (row.now().state, row.now().failure) == ("failed", "process 1 belongs to another user")
    await real(supervised.server)


async def test_a_start_that_stands_still_is_told_and_said_to_have_failed(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.supervise.LAUNCH_STILL_S", 1.0)
    supervised = await row.start("gentle hangs")
    with pytest.raises(LaunchFailed, match="stands still") as failed:
        await asyncio.wait_for(supervised.wait_ready(60), 20)
    assert failed.value.failure_class == "stalled"
    assert (row.now().state, row.now().failure_class) == ("failed", "stalled")
    await supervised.stop()
    assert not marked(row.marker)


async def test_a_server_that_computes_nothing_is_told(row: Row) -> None:
    supervised = await row.start()
    await supervised.wait_ready(20)
    recorder = SimpleNamespace(progress=(1.0, 2.0))
    with pytest.raises(LaunchFailed, match="no token for 0 s"):
        await asyncio.wait_for(supervised.watch_progress(recorder, still_s=0.05), 5)  # type: ignore[arg-type]
    assert row.now().failure_class == "stalled"
    await supervised.stop()
