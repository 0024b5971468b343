"""Telling what stands still from what is slow: a thing counts as still when nothing about it has moved for long."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

import psutil

from engine.processes.process import is_alive
from engine.records import ProcessIdentity

LOOK_EVERY_S = 5.0
RUN_STILL_S = 300.0  # without one token, prompt or generated
# A checkpoint on a network mount may come slowly, but it comes: bytes are read and processor time is spent.
LAUNCH_STILL_S = 900.0
IDLE_CPU_S = 10.0  # of all processes together; what waits on a timer alone spends less than that in LAUNCH_STILL_S


async def until_still(
    look: Callable[[], Hashable],
    still_s: float,
    every_s: float = LOOK_EVERY_S,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return once `look()` has given one and the same value for `still_s` seconds."""
    seen, since = look(), clock()
    while clock() - since < still_s:
        await asyncio.sleep(min(every_s, still_s))
        now = look()
        if now != seen:
            seen, since = now, clock()


def activity(processes: Iterable[ProcessIdentity], log_path: Path) -> tuple[int, int, int]:
    """What moves while a server loads: bytes of its log, processor time in steps of IDLE_CPU_S, bytes read from files.

    The processor time is coarse so that a process that only waits stands still. A log or process that is gone counts
    as nothing.
    """
    try:
        size = log_path.stat().st_size
    except FileNotFoundError:
        size = 0
    seconds, read = 0.0, 0
    for identity in processes:
        try:
            process = psutil.Process(identity.pid)
            with process.oneshot():
                times, counters = process.cpu_times(), process.io_counters()
        except psutil.Error:
            continue  # it ended meanwhile, or is not ours to look at
        if is_alive(identity):
            seconds += times.user + times.system
            read += counters.read_chars
    return size, int(seconds // IDLE_CPU_S), read
