"""Servers whose keeper ended without stopping them: found by what was recorded, and ended."""

from engine.keeper.journal import Journal
from engine.process import boot_id
from engine.records import ProcessIdentity
from engine.stop import ReadGpuUsed, end_leftovers, wait_released
from store.clock import utc_now
from store.records import ServerRecord

GRACE_S = 20.0


async def end_leftover_server(journal: Journal, server: ServerRecord, read_gpu_used: ReadGpuUsed | None = None) -> str:
    """End what is left of `server`, wait until its port and the GPU memory are free, and close its row; returns one
    line that says what was done.

    A process counts as ours only by its recorded start time in this boot, or by the marker in its environment.
    """
    assert server.id is not None
    boot = server.boot_id or boot_id()
    identity = None
    if server.pid is not None and server.start_ticks is not None:
        identity = ProcessIdentity(server.pid, server.start_ticks, boot)
    descendants = [ProcessIdentity(pid, ticks, boot) for pid, ticks in server.descendants]
    report = await end_leftovers(identity, server.pid, server.marker, descendants, GRACE_S)
    if report.ended:
        await wait_released(server.host, server.port, read_gpu_used)
    await journal.update(ServerRecord, server.id, state="stopped", stopped_at=utc_now())
    if not report.ended and not report.survivors:
        return f"server {server.id} ({server.name}) of an earlier keeper was gone already"
    return f"ended server {server.id} ({server.name}), left by an earlier keeper: {report.summary()}"
