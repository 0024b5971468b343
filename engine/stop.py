"""End a server and all that it started, and wait until what it held is free. Never by a name, and never a process
whose start time is another's: every signal goes through `engine.processes.process.send_signal`."""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.patience import Patient
from engine.processes.ports import is_free
from engine.processes.process import group_members, is_alive, marked, send_signal
from engine.records import ProcessIdentity

_LOOK_EVERY_S = 0.1
_KILL_WITHIN_S = 10.0
_GPU_EVERY_S = 0.25
_GPU_READINGS = 4  # a second's worth
_GPU_FLAT_GIB = 0.05

ReadGpuUsed = Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class StopReport:
    """What was done. `terminated` and `killed` are the pids that were signalled, `survivors` those that live in spite
    of SIGKILL (in the kernel's hands). `port_free` and `gpu_flat` are None where nobody looked."""

    exit_code: int | None
    seconds: float
    terminated: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    port_free: bool | None = None
    gpu_flat: bool | None = None

    @property
    def ended(self) -> tuple[int, ...]:
        """Pids that were signalled and are gone."""
        return tuple(sorted({*self.terminated, *self.killed} - {*self.survivors}))

    def summary(self) -> str:
        """One line for the history: "2 processes ended in 3.1 s, 1 of them killed"."""
        ended = len(self.ended)
        parts = [f"{ended} process{'' if ended == 1 else 'es'} ended in {self.seconds:.1f} s"]
        if self.killed:
            parts.append(f"{len(set(self.killed) - set(self.survivors))} of them killed")
        if self.survivors:
            parts.append(f"still there in spite of SIGKILL: {', '.join(map(str, self.survivors))}")
        if self.port_free is False:
            parts.append("its port is not free yet")
        if self.gpu_flat is False:
            parts.append("GPU memory is still moving")
        return ", ".join(parts)


def find_ours(
    identity: ProcessIdentity | None, pgid: int | None, marker: str, descendants: Iterable[ProcessIdentity]
) -> list[ProcessIdentity]:
    """Live processes of one server: its group and session while the leader lives, the recorded descendants, and
    whatever carries its marker. A group whose leader is gone may be a stranger's by now and is not asked."""
    found = set(marked(marker)) if marker else set()
    found.update(process for process in descendants if is_alive(process))
    if identity is not None and is_alive(identity):
        found.add(identity)
        if pgid is not None and pgid == identity.pid:
            found.update(group_members(pgid))
    return sorted((process for process in found if process.pid != os.getpid()), key=lambda process: process.pid)


async def end_processes(
    find: Callable[[], list[ProcessIdentity]],
    grace_s: float,
    reap: Callable[[], int | None] = lambda: None,
    on_seen: Callable[[list[ProcessIdentity]], None] = lambda processes: None,
) -> StopReport:
    """TERM what `find` shows, wait `grace_s` seconds, then KILL what is left or was forked meanwhile until nothing is.

    `reap` collects a child of ours and returns its exit code, if it has one. `on_seen` hears of every process found.
    Raises EngineError if one belongs to another user.
    """
    began = time.monotonic()

    def look() -> list[ProcessIdentity]:
        reap()
        found = find()
        on_seen(found)
        return found

    terminated = [process.pid for process in look() if send_signal(process, signal.SIGTERM)]
    await _until(lambda: not look(), began + grace_s)
    left = look()
    killed: dict[ProcessIdentity, None] = {}
    deadline = time.monotonic() + _KILL_WITHIN_S
    while left and time.monotonic() < deadline:
        killed.update(dict.fromkeys(process for process in left if send_signal(process, signal.SIGKILL)))
        await asyncio.sleep(_LOOK_EVERY_S)
        left = look()
    return StopReport(
        exit_code=reap(),
        seconds=time.monotonic() - began,
        terminated=tuple(terminated),
        killed=tuple(process.pid for process in killed),
        survivors=tuple(process.pid for process in left),
    )


async def end_leftovers(
    identity: ProcessIdentity | None,
    pgid: int | None,
    marker: str,
    descendants: Iterable[ProcessIdentity],
    grace_s: float = 30.0,
) -> StopReport:
    """End what an earlier keeper left, from what it recorded: the server, its descendants and all with its marker.

    `identity` is None where the keeper died before it could write it. A process of an earlier boot is never matched.
    """
    known = dict.fromkeys(descendants)

    def find() -> list[ProcessIdentity]:
        return find_ours(identity, pgid, marker, known)

    def remember(processes: list[ProcessIdentity]) -> None:
        known.update(dict.fromkeys(processes))
        reap_children(known)

    return await end_processes(find, grace_s, on_seen=remember)


async def wait_released(
    host: str, port: int, read_gpu_used: ReadGpuUsed | None = None, timeout_s: float = 30.0
) -> tuple[bool, bool | None]:
    """Wait until the port can be bound again and the GPU memory in use (GiB) has not moved for a second.

    Returns whether each came to pass in `timeout_s`; None for a GPU memory that nobody can read. One that could be read
    and then cannot for a moment (NVML is started anew, a GPU hangs) is waited for: its second begins again.
    """
    deadline = time.monotonic() + timeout_s
    free = await _until(lambda: is_free(host, port), deadline)
    if read_gpu_used is None:
        return free, None
    gpu = Patient(read_gpu_used)
    readings: deque[float] = deque(maxlen=_GPU_READINGS)
    was_read = False
    while time.monotonic() < deadline:
        used = await gpu.ask(deadline - time.monotonic())
        if used is None and not was_read:
            return free, None
        if used is None:
            readings.clear()
        else:
            was_read = True
            readings.append(used)
        if len(readings) == _GPU_READINGS and max(readings) - min(readings) <= _GPU_FLAT_GIB:
            return free, True
        await asyncio.sleep(_GPU_EVERY_S)
    return free, False


async def _until(done: Callable[[], bool], deadline: float) -> bool:
    while True:
        if done():
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_LOOK_EVERY_S)


def reap_children(processes: Iterable[ProcessIdentity]) -> None:
    """Collect those that have ended and are our children (by adoption), lest they stay as zombies."""
    for process in processes:
        try:
            os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            continue  # another's child, or collected already
