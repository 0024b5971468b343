"""Servers whose keeper ended without stopping them: found by what was recorded, and ended."""

import asyncio
import time
from datetime import timedelta
from pathlib import Path

from engine.keeper.client import is_running
from engine.keeper.hold import only_keeper
from engine.keeper.journal import Journal
from engine.keeper.places import KeeperKind, keeper_places
from engine.processes.process import boot_id, is_alive
from engine.records import EngineError, ProcessIdentity
from engine.stop import ReadGpuUsed, end_leftovers, find_ours, wait_released
from store.clock import parse_utc, utc_now
from store.reader import Reader
from store.records import ACTIVE_SERVER_STATES, ServerRecord

GRACE_S = 20.0
# Two containers may share a data directory; each sees only its own processes and locks. Whoever keeps a server samples
# it once a second, so a row with a younger sample than this, whose keeper left no lock here, is kept elsewhere.
KEPT_ELSEWHERE_S = 30.0
DYING_WITHIN_S = 90.0  # a grace of 30 s, SIGKILL, the wait for port and GPU memory, and some


async def end_abandoned(
    data_dir: Path, journal: Journal, reader: Reader, read_gpu_used: ReadGpuUsed | None = None
) -> None:
    """Before anything is started: end what dead keepers of any session or server left on this machine, and say so.

    A server started by hand that still runs is a person's, keeper or not: it is named and left alone. What is only
    left of one (an engine without its API server, which holds GPU memory and answers nobody) is ended.
    """
    for server in reader.servers():
        if server.state not in ACTIVE_SERVER_STATES and not _stopped_lately(server):
            continue
        assert server.id is not None
        kind: KeeperKind = "server" if server.session_id is None else "session"
        number = server.id if server.session_id is None else server.session_id
        if is_running(data_dir, kind, number):
            if (done := await _wait_for_the_dying(server, read_gpu_used)) is not None:
                await journal.event(done)
            continue
        if server.state not in ACTIVE_SERVER_STATES:
            continue
        ran_here = keeper_places(data_dir, kind, number).lock.exists()
        try:
            with only_keeper(data_dir, kind, number):
                done = await _end_abandoned(
                    journal, reader.server(server.id), ran_here or not _sampled_lately(reader, server), read_gpu_used
                )
        except EngineError as error:  # its keeper was started anew meanwhile, or a process is another user's
            done = f"server {server.id} ({server.name}) is left alone: {error}"
        if done is not None:
            await journal.event(done, "warning")


async def _wait_for_the_dying(server: ServerRecord, read_gpu_used: ReadGpuUsed | None) -> str | None:
    """Where a living keeper ends its server, or is about to find it dead: wait until nothing is left of it, since that
    holds memory which the next start needs. A row says that a server failed before all its processes have ended."""
    identity, _ = _recorded(server)
    serves = identity is None or is_alive(identity)
    if (server.state in ("starting", "ready") and serves) or not _left(server):
        return None
    began = time.monotonic()
    deadline = began + DYING_WITHIN_S
    while _left(server) and time.monotonic() < deadline:  # noqa: ASYNC110 - a process has no event to wait for
        await asyncio.sleep(0.25)
    await wait_released(server.host, server.port, read_gpu_used)
    return f"waited {time.monotonic() - began:.1f} s for server {server.id} ({server.name}) to end"


def _left(server: ServerRecord) -> bool:
    identity, descendants = _recorded(server)
    return bool(find_ours(identity, server.pid, server.marker, descendants))


def _stopped_lately(server: ServerRecord) -> bool:
    if server.stopped_at is None:
        return False
    return parse_utc(utc_now()) - parse_utc(server.stopped_at) < timedelta(seconds=DYING_WITHIN_S)


async def _end_abandoned(
    journal: Journal, server: ServerRecord, ran_here: bool, read_gpu_used: ReadGpuUsed | None
) -> str | None:
    identity, _ = _recorded(server)
    here = _left(server)
    if not here and not ran_here:
        return f"server {server.id} ({server.name}) is kept by another machine or container: left alone"
    if server.session_id is None and identity is not None and is_alive(identity):
        return (
            f"server {server.id} ({server.name}) still runs at {server.url} although its keeper "
            f"is gone: llmtune server stop {server.id}"
        )
    done = await end_leftover_server(journal, server, read_gpu_used)
    return done if here else None


def _sampled_lately(reader: Reader, server: ServerRecord) -> bool:
    newest = reader.samples(server_id=server.id, limit=1)
    if not newest:
        return False
    return parse_utc(utc_now()) - parse_utc(newest[0].at) < timedelta(seconds=KEPT_ELSEWHERE_S)


def _recorded(server: ServerRecord) -> tuple[ProcessIdentity | None, list[ProcessIdentity]]:
    """The server's process and its descendants as its keeper recorded them."""
    boot = server.boot_id or boot_id()
    identity = None
    if server.pid is not None and server.start_ticks is not None:
        identity = ProcessIdentity(server.pid, server.start_ticks, boot)
    return identity, [ProcessIdentity(pid, ticks, boot) for pid, ticks in server.descendants]


async def end_leftover_server(journal: Journal, server: ServerRecord, read_gpu_used: ReadGpuUsed | None = None) -> str:
    """End what is left of `server`, wait until its port and the GPU memory are free, and close its row; returns one
    line that says what was done.

    A process counts as ours only by its recorded start time in this boot, or by the marker in its environment.
    """
    assert server.id is not None
    identity, descendants = _recorded(server)
    report = await end_leftovers(identity, server.pid, server.marker, descendants, GRACE_S)
    if report.ended:
        await wait_released(server.host, server.port, read_gpu_used)
    await journal.update(ServerRecord, server.id, state="stopped", stopped_at=utc_now())
    if not report.ended and not report.survivors:
        return f"server {server.id} ({server.name}) of an earlier keeper was gone already"
    return f"ended server {server.id} ({server.name}), left by an earlier keeper: {report.summary()}"
