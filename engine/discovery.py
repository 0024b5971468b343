"""vLLM servers that run on this machine, whoever started them: found by command line and listening socket.

No port is tried here and no server asked: one counts whose listening socket is held by a process whose command line
says vLLM, or, where another user's open files cannot be read, whose port and owner in the kernel's table fit that
command line. Servers in a container with a network of its own are not seen.
"""

import ipaddress
import os
import re
import shlex
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine.launch.command import flag_name, parse_serve
from engine.processes.listeners import Listener, listeners, v6_only
from engine.records import EngineError
from engine.text import clean, redact_argv

DEFAULT_PORT = 8000
TABLE_AGAIN_S = 60.0
ELSEWHERE = "GPUs are those of the server's own machine: not read here"
"""Said in place of the GPUs of a server that is not on this machine."""
_LONGEST_COMMAND = 2**16
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*")
_TITLE = re.compile(r"[\w.-]+::APIServer(_\d+)?")  # setproctitle; the prefix is VLLM_PROCESS_NAME_PREFIX
_SCRIPT = re.compile(r"(^|/)vllm/entrypoints/(openai/api_server|cli/main)\.py$")
_SERVER_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main", "vllm")


@dataclass(frozen=True, slots=True)
class FoundServer:
    """`flags` are those of its command line, without dashes, secrets as `***`; `name` is clean, for a person."""

    url: str
    pid: int
    flags: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    name: str = "vLLM"
    uid: int | None = None  # whose it is


@dataclass(frozen=True, slots=True)
class _Candidate:
    pid: int
    uid: int
    argv: tuple[str, ...]  # from `vllm` or `-m` on; empty for a process that only has a title


class Finder:
    """Looks again and again. The kernel's table of sockets costs some ms to read, command lines less: it is read only
    while a command has no socket yet or commands come or go, and now and then."""

    def __init__(self, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._known: tuple[list[_Candidate], tuple[FoundServer, ...], float] = [], (), 0.0

    def found(self) -> tuple[FoundServer, ...]:
        """See found_servers."""
        candidates = _candidates(self._proc)
        known, servers, read_at = self._known
        settled = len(servers) == len(known) and self._clock() < read_at + TABLE_AGAIN_S
        if candidates != known or not settled:
            servers = _listening(self._proc, candidates)
            self._known = candidates, servers, self._clock()
        return servers


def found_servers(proc: Path = Path("/proc")) -> tuple[FoundServer, ...]:
    """Those that listen now, by port. Reads every command line, some ms for 500 processes: call it on a thread."""
    return _listening(proc, _candidates(proc))


def _listening(proc: Path, candidates: Sequence[_Candidate]) -> tuple[FoundServer, ...]:
    if not candidates:
        return ()
    listening = listeners(proc)
    only_v6 = v6_only(proc)
    found: dict[int, FoundServer] = {}
    for candidate in candidates:
        model, flags = _settings(candidate.argv)
        listener = _listener(proc, candidate, flags, listening)
        if listener is not None and listener.port not in found:
            scheme = "https" if {"ssl-keyfile", "ssl-certfile"} & flags.keys() else "http"
            found[listener.port] = FoundServer(
                f"{scheme}://{listener.host(only_v6)}:{listener.port}",
                candidate.pid,
                flags,
                model,
                _name(model, flags),
                candidate.uid,
            )
    return tuple(found[port] for port in sorted(found))


def on_this_machine(url: str) -> bool:
    """Whether the server of an address runs here: its GPUs are then this machine's. A name other than localhost and
    the machine's own is taken for another's, without asking who that is."""
    host = urlsplit(url).hostname or ""
    if host in ("localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(host)
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))  # which the kernel allows for its own addresses alone
    except (ValueError, OSError):
        return False
    return True


def _candidates(proc: Path) -> list[_Candidate]:
    """By pid. Of several API servers of one command their parent stands, which has the flags and holds the socket too;
    those whose parent is not seen come last."""
    commands: list[_Candidate] = []
    titles: list[_Candidate] = []
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        raw = _read(f"{proc}/{name}/cmdline")
        if b"vllm" not in raw and b"::APIServer" not in raw:
            continue
        argv = _server_argv([part.decode("utf-8", "replace") for part in raw.rstrip(b"\0").split(b"\0")])
        if argv is None:
            continue
        try:
            uid = os.stat(f"{proc}/{name}").st_uid
        except OSError:
            continue  # gone meanwhile
        (commands if argv else titles).append(_Candidate(int(name), uid, argv))
    parents = {one.pid for one in commands}
    alone = [one for one in titles if _parent(proc, one.pid) not in parents]
    return [*sorted(commands, key=lambda one: one.pid), *sorted(alone, key=lambda one: one.pid)]


def _parent(proc: Path, pid: int) -> int | None:
    stat = _read(f"{proc}/{pid}/stat")
    fields = stat[stat.rfind(b")") + 2 :].split()  # the name may hold spaces and brackets itself
    return int(fields[1]) if len(fields) > 1 else None


def _read(path: str) -> bytes:
    """A /proc file at one go; pathlib and its buffers would cost as much again for each of hundreds."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _LONGEST_COMMAND)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _server_argv(argv: Sequence[str]) -> tuple[str, ...] | None:
    """The part of a command line that starts a server, () for a mere title, None where it is another program: a shell,
    ssh or an editor may name vLLM in theirs."""
    if _TITLE.fullmatch(argv[0].strip()):
        return ()
    if os.path.basename(argv[0]) == "vllm":
        return tuple(argv) if argv[1:2] == ["serve"] else None
    if not _INTERPRETER.fullmatch(os.path.basename(argv[0])):
        return None
    for at, word in enumerate(argv[1:], 1):
        rest = argv[at + 1 :]
        if word == "-m":
            ours = rest[:1] and rest[0] in _SERVER_MODULES and ("api_server" in rest[0] or rest[1:2] == ["serve"])
            return tuple(argv[at:]) if ours else None
        if script := _SCRIPT.search(word):
            serves = "api_server" in script[2] or rest[:1] == ["serve"]
            return ("-m", f"vllm.entrypoints.{script[2].replace('/', '.')}", *rest) if serves else None
        if os.path.basename(word) == "vllm":
            return tuple(argv[at:]) if rest[:1] == ["serve"] else None
        if not word.startswith("-"):
            return None  # another script
    return None


def _settings(argv: Sequence[str]) -> tuple[str | None, dict[str, Any]]:
    """Model and flags; of a command line that cannot be read whole, those that say where it listens."""
    if not argv:
        return None, {}
    shown = redact_argv(argv)
    try:
        return parse_serve(shlex.join(shown))
    except EngineError:  # a model in a file, a flag that stands twice: vLLM knows what to make of it
        flags: dict[str, Any] = {}
        for word, following in zip(shown, [*shown[1:], ""], strict=True):
            name, equals, value = word.partition("=")
            if word.startswith("--") and flag_name(name) in ("port", "host", "uds", "headless", "served-model-name"):
                flags[flag_name(name)] = value if equals else following
        return None, flags


def _listener(
    proc: Path, candidate: _Candidate, flags: Mapping[str, Any], listening: Sequence[Listener]
) -> Listener | None:
    if "uds" in flags or flags.get("headless"):
        return None
    port = _port(flags)
    likely = port or DEFAULT_PORT
    own = _socket_inodes(f"{proc}/{candidate.pid}/fd")
    if own is None:  # another user's
        return next((one for one in listening if one.port == likely and one.uid == candidate.uid), None)
    # A front end that is not Python, and several API servers, are children of the command.
    children = _read(f"{proc}/{candidate.pid}/task/{candidate.pid}/children").split()
    theirs = (_socket_inodes(f"{proc}/{child.decode()}/fd") or set() for child in children)
    for inodes in (own, set().union(*theirs)):
        held = {one.port: one for one in listening if one.inode in inodes}
        if likely in held:
            return held[likely]
        if port is None and len(held) == 1:  # the port stands in a file: one that listens once leaves no doubt
            return held.popitem()[1]
    return None


def _port(flags: Mapping[str, Any]) -> int | None:
    try:
        return int(flags["port"])
    except (KeyError, TypeError, ValueError):
        return None


def _socket_inodes(folder: str) -> set[int] | None:
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    inodes = set()
    for name in names:
        try:
            link = os.readlink(f"{folder}/{name}")
        except OSError:
            continue  # closed meanwhile
        if link.startswith("socket:["):
            inodes.add(int(link[8:-1]))
    return inodes


def _name(model: str | None, flags: Mapping[str, Any]) -> str:
    served = flags.get("served-model-name")
    if isinstance(served, list):
        served = served[0] if served else None
    return clean(str(served or os.path.basename((model or "").rstrip("/")) or "vLLM"), 60) or "vLLM"
