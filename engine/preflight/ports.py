"""The port that a server takes first, and the folder of our sockets."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.preflight.check import Check
from engine.processes.ports import free_port, holder, is_free
from engine.processes.process import listener_pids

HOST, FIRST = "127.0.0.1", 8000


@dataclass(frozen=True, slots=True)
class PortsReading:
    """`free` is the first port from FIRST on that can be had; `holder` says who has FIRST, None if nobody."""

    free: int
    holder: str | None = None
    listeners: frozenset[int] = frozenset()


def read_ports() -> PortsReading:
    """Raises EngineError where a thousand ports in a row are taken."""
    if is_free(HOST, FIRST):
        return PortsReading(FIRST)
    return PortsReading(free_port(HOST, FIRST), holder(HOST, FIRST), frozenset(listener_pids(FIRST)))


def ports_check(reading: PortsReading, ours: Mapping[int, str]) -> Check:
    """`ours` names the processes of our servers by pid."""
    if reading.holder is None:
        return Check("ports", "ok", f"{FIRST} is free")
    mine = next((ours[pid] for pid in sorted(reading.listeners) if pid in ours), None)
    if mine is not None:
        return Check("ports", "ok", f"{FIRST} is taken by {mine}; {reading.free} is free")
    advice = f"nothing, if you know it: servers started here take {reading.free}"
    return Check("ports", "warning", f"{FIRST} is taken by {reading.holder}", advice)
