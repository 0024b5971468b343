"""Whose a process on a GPU is: of a server of ours, another's on this machine, or none that can be seen from here.

The one place that says who holds GPU memory. Never by a name: a process is ours if it, or one it descends from, is the
pid with the start time that a server's row recorded, or if it carries the server's marker. In a container NVML may
tell pids of the host, which here belong to nobody or to somebody else: a process on a GPU has its device open, and what
has not is not the one that NVML means.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from engine.processes.process import boot_id, marker_of, opens_gpu, read_stat
from engine.records import GpuProcess
from engine.samples.sample_record import kept_gpus
from engine.text import clean
from store.records import SampleRecord, ServerRecord

Whose = Literal["ours", "another", "unseen"]

LOOK_AGAIN_S = 10.0
STRANGE_SERVER = "a server of llmtune's, of another data directory"
TRAINING = "a training of llmtune's"
EVALUATION = "an evaluation of llmtune's"
TRAINING_MARKER, EVALUATION_MARKER = "training-", "evaluation-"
"""How the markers of their processes begin; that of a server is hexadecimal."""
_GENERATIONS = 64
_NAME_W = 60


@dataclass(frozen=True, slots=True)
class Owner:
    """`server` names our server, clean; None for what is not ours."""

    whose: Whose
    server: str | None = None


Owners = Mapping[int, Owner]
"""By the pids that NVML tells."""

UNSEEN = Owner("unseen")
ANOTHER = Owner("another")
NOBODY: Owners = {}


def find_owners(
    pids: Iterable[int],
    servers: Sequence[ServerRecord] = (),
    on_gpu: Callable[[int], bool | None] = opens_gpu,
) -> Owners:
    """Whose each of `pids` is now, among the `servers` of this data directory. `on_gpu` says whether a process has a
    GPU open (None: cannot be seen)."""
    here = boot_id()
    recorded: dict[tuple[int, int], str] = {}
    by_marker: dict[str, str] = {}
    for server in servers:
        name = server_name(server)
        if server.marker:
            by_marker[server.marker] = name
        if server.boot_id in (None, here):
            recorded |= dict.fromkeys(_processes(server), name)
    return {pid: _owner(pid, recorded, by_marker, on_gpu) for pid in pids}


def server_name(server: ServerRecord) -> str:
    """ "our server 3, chat"."""
    number = "" if server.id is None else f" {server.id}"
    return f"our server{number}, {clean(server.name, _NAME_W)}"


def _processes(server: ServerRecord) -> list[tuple[int, int]]:
    leader = [(server.pid, server.start_ticks)] if server.pid is not None and server.start_ticks is not None else []
    return [*leader, *((pid, ticks) for pid, ticks in server.descendants)]


def _owner(
    pid: int,
    recorded: Mapping[tuple[int, int], str],
    by_marker: Mapping[str, str],
    on_gpu: Callable[[int], bool | None],
) -> Owner:
    open_here = on_gpu(pid)
    if open_here is False:
        return UNSEEN
    if open_here is None:
        return ANOTHER  # another user's: it exists, and more cannot be said
    at: int | None = pid
    for _ in range(_GENERATIONS):
        stat = read_stat(at) if at else None
        if stat is None:
            break
        if (name := recorded.get((stat.pid, stat.start_ticks))) is not None:
            return Owner("ours", name)
        if (marker := marker_of(stat.pid)) is not None:
            return Owner("ours", by_marker.get(marker, _by_its_marker(marker)))
        at = stat.ppid
    return ANOTHER


def _by_its_marker(marker: str) -> str:
    if marker.startswith(TRAINING_MARKER):
        return TRAINING
    return EVALUATION if marker.startswith(EVALUATION_MARKER) else STRANGE_SERVER


class OwnerLook:
    """The owners of what a sample shows, from /proc; kept until other processes are on the GPUs, other servers run, or
    some seconds have passed. `clock` is monotonic."""

    def __init__(
        self,
        on_gpu: Callable[[int], bool | None] = opens_gpu,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_gpu = on_gpu
        self._clock = clock
        self._of: object = None
        self._until = 0.0
        self._owners: Owners = NOBODY

    def of(self, sample: SampleRecord | None, servers: Sequence[ServerRecord]) -> Owners:
        """Of the processes on the sample's GPUs, among our `servers`. It reads /proc: on a thread."""
        pids = frozenset(pids_of(sample))
        asked = (pids, tuple((one.id, one.pid, len(one.descendants)) for one in servers))
        if asked != self._of or self._clock() >= self._until:
            self._of, self._until = asked, self._clock() + LOOK_AGAIN_S
            self._owners = find_owners(pids, servers, self._on_gpu)
        return self._owners


def pids_of(sample: SampleRecord | None) -> list[int]:
    """The pids on the GPUs of a sample."""
    return [
        process["pid"]
        for gpu in kept_gpus(sample)
        for process in _listed(gpu)
        if isinstance(process, Mapping) and isinstance(process.get("pid"), int)
    ]


def _listed(gpu: Mapping[str, Any]) -> Sequence[Any]:
    processes = gpu.get("processes")
    return processes if isinstance(processes, list) else ()


def held_by(process: GpuProcess, owner: Owner | None = None) -> str:
    """ "pid 693 (VLLM::EngineCore, our server 3, chat) 133.8 GiB"; without an owner nothing is said of one."""
    said = [clean(process.name, _NAME_W)] if process.name else []
    if owner is not None:
        said += [owner.server] if owner.server else ["not visible from here"] if owner.whose == "unseen" else []
    what = f" ({', '.join(said)})" if said else ""
    size = "" if process.used_gib is None else f" {process.used_gib:.1f} GiB"
    return f"pid {process.pid}{what}{size}"
