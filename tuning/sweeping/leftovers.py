"""What a keeper that was killed leaves of its session: servers, a benchmark process, rows that say it is at work."""

import asyncio
from pathlib import Path

from engine.keeper.hold import only_keeper
from engine.keeper.journal import Journal, unsaid
from engine.leftovers import end_leftover_server
from engine.stop import ReadGpuUsed, end_leftovers
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.reader import Reader
from store.records import LaunchRecord, RunRecord, SessionRecord

ENDED = "its keeper ended"


async def clear_up(
    session: SessionRecord, journal: Journal, reader: Reader, read_gpu_used: ReadGpuUsed | None = None
) -> None:
    """End what an earlier keeper left running, and close its open rows. The caller holds the session's lock."""
    assert session.id is not None
    for server in reader.servers(session_id=session.id, active=True):
        done = await end_leftover_server(journal, server, read_gpu_used)
        await journal.event(done, "warning", server_id=server.id)
    if marker := session.raw.get("bench_marker"):
        await end_leftovers(None, None, marker, [])
    for launch in reader.launches(session.id):
        if launch.id is not None and launch.state in ("starting", "ready"):
            await journal.update(LaunchRecord, launch.id, state="abandoned", failure=ENDED, finished_at=utc_now())
    for run in reader.runs(session.id):
        if run.id is not None and run.state == "running":
            await journal.update(RunRecord, run.id, state="abandoned", reason=ENDED, finished_at=utc_now())


def close_session(data_dir: Path, session_id: int) -> None:
    """Stop a session that nothing works on: it can be resumed, or deleted, afterwards. Raises EngineError where it has
    a keeper, StoreError."""
    database = database_file(data_dir)
    with (
        only_keeper(data_dir, "session", session_id),
        open_writer(database) as writer,
        open_reader(database) as reader,
    ):
        asyncio.run(_close(Journal(writer, session_id=session_id, log=unsaid), reader, session_id))


async def _close(journal: Journal, reader: Reader, session_id: int) -> None:
    journal.end_within(0.0)
    await clear_up(reader.session(session_id), journal, reader)
    await journal.event("stopped, as asked; nothing worked on it")
    await journal.update(SessionRecord, session_id, state="stopped", message="stopped, as asked", finished_at=utc_now())
    journal.require_all_written()
