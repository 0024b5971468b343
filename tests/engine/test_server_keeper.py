"""The keeper of a server started by hand, in this process, on the stand-in; and the start of one from outside."""

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.hand_servers import spec_from_json, start_server
from engine.keeper.client import call, is_running
from engine.keeper.journal import Journal
from engine.launch.local_paths import absolute_flags
from engine.processes.process import marked
from engine.records import EngineError
from engine.server_keeper import ServerKeeper
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.errors import StoreFull
from store.location import database_file
from store.reader import Reader
from store.records import ServerRecord
from store.writer import Writer
from tests.engine.server_stand_in import stand_in, stand_in_spec


class Hand:
    """One keeper with its row."""

    def __init__(self, writer: Writer, reader: Reader, folder: Path, mode: str) -> None:
        self.reader = reader
        self.marker = uuid.uuid4().hex  # two runs of the tests must not end each other
        record = ServerRecord(
            "s", "starting", "m", "127.0.0.1", 8600, [], {}, str(folder / "s.log"), self.marker, started_at=utc_now()
        )
        self.number = writer.insert(record)
        self.journal = Journal(writer, server_id=self.number)
        self.keeper = ServerKeeper(
            reader.server(self.number), self.journal, stand_in(folder), stand_in_spec(folder, mode)
        )

    def row(self) -> ServerRecord:
        return self.reader.server(self.number)

    async def until_that(self, holds: Callable[[], bool]) -> ServerRecord:
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - a row has no event to wait for
                await asyncio.sleep(0.02)
        return self.row()

    async def ask(self, command: str) -> Any:
        return await self.keeper.commands()[command]({})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Writer, Reader]]:
    with open_writer(tmp_path / "llmtune.db") as writer, open_reader(tmp_path / "llmtune.db") as reader:
        yield writer, reader


async def test_told_to_end_before_it_began_it_ends(store: tuple[Writer, Reader], tmp_path: Path) -> None:
    hand = Hand(*store, tmp_path, "gentle")
    hand.keeper.terminate("the keeper was sent SIGTERM")
    await asyncio.wait_for(hand.keeper.work(), 60)
    assert hand.row().state == "stopped"
    assert not marked(hand.marker)


async def test_a_restart_while_it_starts_and_a_stop_that_no_restart_takes_back(
    store: tuple[Writer, Reader], tmp_path: Path
) -> None:
    hand = Hand(*store, tmp_path, "gentle")
    working = asyncio.create_task(hand.keeper.work())
    first = (await hand.until_that(lambda: hand.row().pid is not None)).pid
    await hand.ask("restart")
    ready = await hand.until_that(lambda: hand.row().state == "ready")
    assert ready.pid != first
    await hand.ask("stop")
    with pytest.raises(EngineError, match="being stopped"):
        await hand.ask("restart")
    await asyncio.wait_for(working, 60)
    assert hand.row().state == "stopped"
    assert not marked(hand.marker)


async def test_a_server_that_dies_while_loading_ends_its_keeper(store: tuple[Writer, Reader], tmp_path: Path) -> None:
    hand = Hand(*store, tmp_path, "gentle dies")
    await asyncio.wait_for(hand.keeper.work(), 60)
    assert hand.row().state == "failed"
    assert any("max-model-len 999999" in event.text for event in store[1].events(server_id=hand.number))
    assert not marked(hand.marker)


async def test_a_stop_gets_through_while_the_disk_is_full(
    store: tuple[Writer, Reader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = Hand(*store, tmp_path, "gentle")
    monkeypatch.setattr(hand.journal, "end_within", lambda: Journal.end_within(hand.journal, 0.2))

    def full(*_: Any, **__: Any) -> None:
        raise StoreFull("no space is left")

    monkeypatch.setattr(store[0], "update", full)
    monkeypatch.setattr(store[0], "insert", full)
    working = asyncio.create_task(hand.keeper.work())
    await hand.until_that(lambda: hand.journal.blocked is not None)
    assert marked(hand.marker)
    await hand.ask("stop")
    await asyncio.wait_for(working, 10)
    assert not marked(hand.marker)
    assert f"server {hand.number} stopped" in hand.journal.lost


def test_a_keeper_of_its_own_process_is_started_asked_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(tmp_path / "run"))
    data_dir = tmp_path / "data"
    monkeypatch.chdir(tmp_path)
    installation = stand_in(tmp_path)
    spec = stand_in_spec(tmp_path, "gentle", model="model")  # relative: the keeper works in another folder
    number = start_server(data_dir, installation, spec, "s", os.environ)
    assert call(data_dir, "server", number, "status")["blocked"] is None
    call(data_dir, "server", number, "stop")
    deadline = time.monotonic() + 20
    while is_running(data_dir, "server", number):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with open_reader(database_file(data_dir)) as reader:
        row = reader.server(number)
    assert (row.state, row.model) == ("stopped", str(tmp_path / "model")), row.failure
    assert spec_from_json(row.raw["spec"], {}).model == str(tmp_path / "model")
    assert not marked(row.marker)


def test_a_keeper_that_does_not_start_is_a_failed_server_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr("engine.hand_servers.MODULE", "engine.no_such_keeper")
    installation = stand_in(tmp_path)
    with pytest.raises(EngineError, match=r"did not start: .*no_such_keeper"):
        start_server(tmp_path / "data", installation, stand_in_spec(tmp_path), "s", os.environ)
    with open_reader(database_file(tmp_path / "data")) as reader:
        (row,) = reader.servers()
    assert row.state == "failed"
    assert row.failure is not None
    assert "no_such_keeper" in row.failure


def test_paths_among_the_flags_are_those_of_the_person(tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").touch()
    (tmp_path / "auto").touch()
    (tmp_path / "adapter").mkdir()
    flags = {
        "chat-template": "chat.jinja",
        "lora_modules": ["mine=adapter", "theirs=org/name"],
        "dtype": "auto",
        "tokenizer": "org/name",
        "max-num-seqs": 4,
    }
    assert absolute_flags(flags, tmp_path) == {
        **flags,
        "chat-template": str(tmp_path / "chat.jinja"),
        "lora_modules": [f"mine={tmp_path}/adapter", "theirs=org/name"],
    }
    assert absolute_flags({"chat-template": "{% for m in messages %}" * 400}, tmp_path)["chat-template"].startswith(
        "{%"
    )


async def test_what_a_restart_starts_can_be_changed_meanwhile(store: tuple[Writer, Reader], tmp_path: Path) -> None:
    hand = Hand(*store, tmp_path, "gentle")
    working = asyncio.create_task(hand.keeper.work())
    first = (await hand.until_that(lambda: hand.row().state == "ready")).pid
    change = hand.keeper.commands()["flags"]
    with pytest.raises(EngineError, match="flags wants an object"):
        await change({"flags": []})
    await change({"flags": {"lora-modules": ["a=/adapters/a/1"]}, "event": "a@1 was loaded"})
    row = hand.row()
    assert row.raw["spec"]["flags"]["lora-modules"] == ["a=/adapters/a/1"]
    assert "--lora-modules" not in row.command  # what runs was started with
    assert store[1].events(server_id=hand.number)[-1].text == "a@1 was loaded"
    await hand.ask("restart")
    await hand.until_that(lambda: hand.row().state == "ready" and hand.row().pid != first)
    command = hand.row().command
    assert command[command.index("--lora-modules") + 1] == "a=/adapters/a/1"
    await hand.ask("stop")
    await asyncio.wait_for(working, 60)
