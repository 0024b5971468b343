"""Servers whose keeper ended without stopping them: found by what was recorded, and ended."""

from engine.keeper.journal import Journal
from engine.process import boot_id
from engine.records import ProcessIdentity
from engine.stop import end_leftovers
from store.clock import utc_now
from store.records import ServerRecord

GRACE_S = 20.0


async def end_leftover_server(journal: Journal, server: ServerRecord) -> str:
    """End what is left of `server` and close its row; returns one line that says what was done.

    A process counts as ours only by its recorded start time in this boot, or by the marker in its environment.
    """
    assert server.id is not None
    boot = server.boot_id or boot_id()
    identity = None
    if server.pid is not None and server.start_ticks is not None:
        identity = ProcessIdentity(server.pid, server.start_ticks, boot)
    descendants = [ProcessIdentity(pid, ticks, boot) for pid, ticks in server.descendants]
    report = await end_leftovers(identity, server.pid, server.marker, descendants, GRACE_S)
    await journal.update(ServerRecord, server.id, state="stopped", stopped_at=utc_now())
    if not report.terminated:
        return f"server {server.id} ({server.name}) of an earlier keeper was gone already"
    pids = ", ".join(str(pid) for pid in report.terminated)
    return f"ended server {server.id} ({server.name}), left by an earlier keeper: pids {pids}, {report.seconds:.1f} s"
