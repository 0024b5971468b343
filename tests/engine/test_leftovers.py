"""What dead keepers left is ended before the next start, whoever starts; what lives or is kept elsewhere is not."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.keeper.hold import only_keeper
from engine.keeper.journal import Journal
from engine.keeper.places import keeper_places
from engine.leftovers import end_abandoned
from engine.processes.process import marked
from engine.server import Server
from engine.stop import end_leftovers
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.reader import Reader
from store.records import SampleRecord, ServerRecord, SessionRecord
from store.writer import Writer
from tests.engine.server_stand_in import stand_in, stand_in_spec


@dataclass
class Place:
    """A data directory, the keeper that is about to start something (number 1000), and a server of a dead keeper."""

    folder: Path
    writer: Writer
    reader: Reader
    left: Server | None = None
    number: int = 0

    async def leave(self, session_id: int | None = None, *, alive: bool = True) -> None:
        """A server whose keeper is dead; with `alive` False only its child is left of it."""
        marker = uuid.uuid4().hex
        spec = stand_in_spec(self.folder, "gentle")
        self.left = await Server.start(stand_in(self.folder), spec, log_path=self.folder / "s.log", marker=marker)
        await self.left.wait_ready(20)
        children = self.left.descendants()
        assert children
        record = ServerRecord(
            "left", "ready", "m", spec.host, spec.port, [], {}, "", marker, session_id=session_id,
            pid=self.left.identity.pid, start_ticks=self.left.identity.start_ticks, boot_id=self.left.identity.boot_id,
            descendants=[[child.pid, child.start_ticks] for child in children],
        )  # fmt: skip
        self.number = self.writer.insert(record)
        if not alive:
            self.left._process.kill()
            self.left._process.wait()

    async def clear_up(self) -> str:
        await end_abandoned(self.folder, Journal(self.writer, server_id=None), self.reader, lambda: 1.0)
        return "\n".join(event.text for event in self.reader.events())

    def row(self) -> ServerRecord:
        return self.reader.server(self.number)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Writer, Reader]]:
    with open_writer(tmp_path / "llmtune.db") as writer, open_reader(tmp_path / "llmtune.db") as reader:
        yield writer, reader


@pytest.fixture
async def place(tmp_path: Path, store: tuple[Writer, Reader], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(tmp_path / "run"))
    made = Place(tmp_path, *store)
    yield made
    if made.left is not None:
        made.left.poll()
        await end_leftovers(made.left.identity, made.left.pgid, made.left.marker, [], 0.1)


async def test_what_is_left_of_a_server_without_its_api_server_is_ended(place: Place) -> None:
    await place.leave(alive=False)
    assert marked(place.row().marker)
    said = await place.clear_up()
    assert not marked(place.row().marker)
    assert place.row().state == "stopped"
    assert "left by an earlier keeper" in said


async def test_a_server_by_hand_that_still_serves_is_named_and_left_alone(place: Place) -> None:
    await place.leave()
    said = await place.clear_up()
    assert place.left is not None
    assert place.left.poll() is None
    assert place.row().state == "ready"
    assert f"llmtune server stop {place.number}" in said


async def test_a_server_of_a_dead_sweep_is_ended_by_whoever_starts_next(place: Place) -> None:
    session = place.writer.insert(SessionRecord("s", "running", "", {}, [], 1, utc_now()))
    await place.leave(session)
    await place.clear_up()
    assert not marked(place.row().marker)
    assert place.row().state == "stopped"


async def test_a_server_with_a_living_keeper_is_not_touched(place: Place) -> None:
    await place.leave()
    with only_keeper(place.folder, "server", place.number):
        said = await place.clear_up()
    assert marked(place.row().marker)
    assert (place.row().state, said) == ("ready", "")


async def test_a_living_keeper_is_waited_for_while_its_server_dies(place: Place) -> None:
    await place.leave(alive=False)
    place.writer.update(ServerRecord, place.number, state="failed", stopped_at=utc_now())  # and ends the rest now
    with only_keeper(place.folder, "server", place.number):
        clearing = asyncio.create_task(place.clear_up())
        await asyncio.sleep(0.6)
        assert not clearing.done()
        assert marked(place.row().marker)
        await end_leftovers(None, None, place.row().marker, [], 1.0)
        said = await asyncio.wait_for(clearing, 20)
    assert f"for server {place.number} (left) to end" in said


@pytest.mark.parametrize(
    ("sampled", "ran_here", "state"),
    [("now", False, "ready"), ("now", True, "stopped"), ("long ago", False, "stopped")],
)
async def test_a_row_of_which_nothing_lives_here_is_closed_unless_somebody_elsewhere_samples_it(
    place: Place, sampled: str, ran_here: bool, state: str
) -> None:
    record = ServerRecord("far", "ready", "m", "127.0.0.1", 8600, [], {}, "", "far", pid=1, boot_id="another boot")
    place.number = place.writer.insert(record)
    at = utc_now() if sampled == "now" else "2026-01-01T00:00:00.000Z"
    if ran_here:
        keeper_places(place.folder, "server", place.number, os.environ).lock.touch(mode=0o600)
    place.writer.insert_samples([replace(SampleRecord(at), server_id=place.number)])
    said = await place.clear_up()
    assert place.row().state == state
    assert ("another machine or container" in said) == (state == "ready")
