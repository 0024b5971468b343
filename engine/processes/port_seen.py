"""Who listens on the port of a server of ours at one moment: looked at on the edges of a run, since what answers there
is what was measured. From the kernel's table of sockets, whose inodes /proc ties to processes (proc(5))."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.processes.listeners import Listener, listeners
from engine.processes.process import command_line, listener_pids, open_sockets
from engine.records import ProcessIdentity
from engine.text import clean, redact
from store.clock import utc_now

_PROC = Path("/proc")
_ANY = frozenset({"0.0.0.0", "::", "::ffff:0.0.0.0"})
_COMMAND_W = 120


@dataclass(frozen=True, slots=True)
class PortSeen:
    """`pids` are all processes of the server, `ours` those of them that listen. `strangers` is who else takes
    connections to its address, in words, one a socket. Where the kernel's table shows nobody at all (a sandbox hides
    it), or the sockets of the server's processes cannot be seen, both are empty: that says nothing. `began` is when the
    server's process started, unix seconds."""

    at: str
    port: int
    pids: tuple[int, ...]
    ours: tuple[int, ...] = ()
    strangers: tuple[str, ...] = ()
    began: float | None = None


def port_seen(host: str, port: int, server: ProcessIdentity, children: Sequence[ProcessIdentity]) -> PortSeen:
    """Who listens on `port` now, seen from the server with these processes that was told to listen on `host`."""
    pids = (server.pid, *(child.pid for child in children))
    rows = [row for row in listeners(_PROC) if row.port == port]
    held = {pid: open_sockets(pid) for pid in pids} if rows else {}
    own = set().union(*held.values())
    # A server has sockets, if only to its engine: where none can be seen, neither can whose the port is.
    others = strange(rows, own, host) if own else []
    return PortSeen(
        at=utc_now(),
        port=port,
        pids=pids,
        ours=tuple(pid for pid in pids if any(row.inode in held.get(pid, ()) for row in rows)),
        strangers=_names(port, others, pids),
        began=started(server),
    )


def strange(rows: Collection[Listener], own: Collection[int], host: str) -> list[Listener]:
    """The listeners that take connections meant for ours, whose sockets have the inodes `own`. The kernel gives a
    connection to the most specific address, and shares it between sockets of the same (SO_REUSEPORT): a listener of
    another address beside ours takes nothing from it."""
    addresses = {row.address for row in rows if row.inode in own}
    if not addresses:
        wanted = {"localhost": "127.0.0.1", "": "0.0.0.0"}.get(host, host)
        addresses = {wanted, *_ANY} if wanted not in _ANY else {row.address for row in rows}
    return [row for row in rows if row.inode not in own and row.address in addresses]


def started(server: ProcessIdentity) -> float | None:
    """Unix seconds at which that process started, as Prometheus's Python client reckons its own (btime, proc(5))."""
    try:
        lines = (_PROC / "stat").read_text().splitlines()
        boot = next(float(line.split()[1]) for line in lines if line.startswith("btime "))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    return boot + server.start_ticks / os.sysconf("SC_CLK_TCK")


def _names(port: int, others: Sequence[Listener], ours: Collection[int]) -> tuple[str, ...]:
    if not others:
        return ()
    pids = sorted(listener_pids(port) - set(ours))
    seen = [f"process {pid} ({redact(clean(command_line(pid) or '?', _COMMAND_W))})" for pid in pids]
    hidden = ["a process of another user or container"] * (len(others) - len(seen))
    return tuple(seen + hidden)
