"""Processes as /proc shows them: who one is, whether it still lives, whom it started, who listens on a port.

Format: proc_pid_stat(5) (state is field 3, parent 4, process group 5, session 6, start time 22). A process that another
user owns shows no environment and no sockets: such a one is left out.
"""

import ctypes
import errno
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from engine.processes.tcp_table import INODE, LISTEN, LOCAL, STATE, tcp_rows
from engine.records import EngineError, ProcessIdentity

MARKER_VARIABLE = "LLMTUNE_SERVER"

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of /proc/PID/stat that we use; `start_ticks` counts clock ticks since boot."""

    pid: int
    state: str
    ppid: int
    pgid: int
    sid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """One line of /proc/net/tcp or tcp6: the local port, whether it listens, and the inode (0 once orphaned)."""

    port: int
    listens: bool
    inode: int


def boot_id() -> str:
    """This boot's id, or "" where the kernel hides it."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def read_stat(pid: int) -> ProcessStat | None:
    """What /proc says of `pid`, or None if there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rfind(")") + 2 :].split()  # the name may hold spaces and brackets itself
    if len(fields) < 20:
        return None
    return ProcessStat(pid, fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def all_stats() -> list[ProcessStat]:
    """Every process that /proc shows now."""
    pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    return [stat for stat in map(read_stat, pids) if stat is not None]


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of a live process, or None if there is none with this pid (a zombie counts as none)."""
    stat = read_stat(pid)
    return _identity(stat, boot_id()) if stat is not None and _lives(stat) else None


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs; another one that was given its pid does not count, nor does a zombie."""
    return identify(identity.pid) == identity


def descendants(pid: int) -> list[ProcessIdentity]:
    """Live children of `pid`, their children and so on, by pid; what was reparented meanwhile is not found here."""
    children: dict[int, list[ProcessStat]] = {}
    for stat in all_stats():
        children.setdefault(stat.ppid, []).append(stat)
    found: list[ProcessStat] = []
    pending = [pid]
    while pending:
        for child in children.pop(pending.pop(), []):
            found.append(child)
            pending.append(child.pid)
    return _identities(found)


def group_members(pgid: int) -> list[ProcessIdentity]:
    """Live processes whose process group or session is `pgid`, by pid."""
    return _identities([stat for stat in all_stats() if pgid in (stat.pgid, stat.sid)])


def marked(marker: str) -> list[ProcessIdentity]:
    """Live processes with `LLMTUNE_SERVER=marker` in their environment, by pid. The environment is the one at exec."""
    wanted = f"{MARKER_VARIABLE}={marker}".encode()
    return _identities([stat for stat in all_stats() if wanted in _environ(stat.pid)])


def markers() -> dict[int, str]:
    """The marker of every live process that has one in its environment, by pid."""
    found = ((stat, marker_of(stat.pid)) for stat in all_stats())
    return {stat.pid: marker for stat, marker in found if marker is not None and _lives(stat)}


def marker_of(pid: int) -> str | None:
    """The marker in the environment of `pid`, None without one or where it cannot be read. A process that sets its own
    title may have written over it."""
    prefix = f"{MARKER_VARIABLE}=".encode()
    found = (variable for variable in _environ(pid) if variable.startswith(prefix))
    return next((variable.removeprefix(prefix).decode(errors="replace") for variable in found), None)


def opens_gpu(pid: int) -> bool | None:
    """Whether that process has a GPU's device open; None for another user's, of which that cannot be seen. False where
    there is no such process."""
    try:
        names = os.listdir(_PROC / str(pid) / "fd")
    except PermissionError:
        return None
    except OSError:
        return False
    return bool(names) and any(link.startswith(("/dev/nvidia", "/dev/dxg")) for link in _open_links(pid))


def command_line(pid: int) -> str | None:
    """The arguments of `pid` joined with spaces (or the title that it gave itself), None if they cannot be read."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    return raw.replace(b"\0", b" ").decode(errors="replace").strip() or None


def tcp_sockets(port: int) -> list[TcpSocket]:
    """TCP sockets of this network namespace with `port` as their local port. One that is bound but neither listens
    nor is connected stands in no table of the kernel and is not among them."""
    ours = f":{port:04X}"
    rows = (fields for fields in tcp_rows(_PROC, f"{ours} ") if fields[LOCAL].endswith(ours))
    return [TcpSocket(port, fields[STATE] == LISTEN, int(fields[INODE])) for fields in rows]


def listener_pids(port: int) -> set[int]:
    """Pids that hold a listening TCP socket on `port`; empty if nobody listens or all holders are another user's."""
    inodes = {sock.inode for sock in tcp_sockets(port) if sock.listens}
    if not inodes:
        return set()
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return {stat.pid for stat in all_stats() if wanted & _open_links(stat.pid)}


def open_sockets(pid: int) -> set[int]:
    """Inodes of the sockets that `pid` has open; empty for another user's process, of which that cannot be seen."""
    links = (link for link in _open_links(pid) if link.startswith("socket:["))
    return {int(link[8:-1]) for link in links if link[8:-1].isdecimal()}


def send_signal(identity: ProcessIdentity, signal_number: int) -> bool:
    """Signal this very process and no other. False if it is gone or its pid belongs to another by now.

    A pidfd is taken first and the identity compared after, so the pid cannot change hands in between.
    Raises EngineError if the process belongs to another user.
    """
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # a sandbox without pidfd
            raise
        return is_alive(identity) and _deliver(identity.pid, signal_number, None)
    try:
        return is_alive(identity) and _deliver(identity.pid, signal_number, descriptor)
    finally:
        os.close(descriptor)


def adopt_orphans() -> None:
    """Make this process the new parent of its descendants' orphans (PR_SET_CHILD_SUBREAPER), so that it can find and
    reap them. Raises OSError where the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _deliver(pid: int, signal_number: int, descriptor: int | None) -> bool:
    try:
        if descriptor is None:
            os.kill(pid, signal_number)
        else:
            signal.pidfd_send_signal(descriptor, signal_number)
    except ProcessLookupError:
        return False
    except PermissionError:
        raise EngineError(f"process {pid} belongs to another user and cannot be ended from here") from None
    return True


def _lives(stat: ProcessStat) -> bool:
    return stat.state not in ("Z", "X", "x")


def _identity(stat: ProcessStat, boot: str) -> ProcessIdentity:
    return ProcessIdentity(stat.pid, stat.start_ticks, boot)


def _identities(stats: list[ProcessStat]) -> list[ProcessIdentity]:
    boot = boot_id()
    return [_identity(stat, boot) for stat in sorted(stats, key=lambda stat: stat.pid) if _lives(stat)]


def _environ(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _open_links(pid: int) -> set[str]:
    folder = _PROC / str(pid) / "fd"
    links: set[str] = set()
    try:
        names = os.listdir(folder)
    except OSError:
        return links
    for name in names:
        try:
            links.add(os.readlink(folder / name))
        except OSError:
            continue  # closed meanwhile
    return links
