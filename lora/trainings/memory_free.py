"""How much memory is free for a training, and who holds the rest: a server of ours can be stopped, so it is named."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.discovery import FoundServer, found_servers
from engine.gpu_owners import Owners, find_owners, held_by, server_name
from engine.gpus.gpu import GpuReader
from engine.gpus.visible_gpus import as_server_sees
from engine.preflight.memory import MemoryReading, read_memory, usable
from engine.processes.process import descendants
from engine.records import GpuReading, GpuSample
from engine.text import clean
from lora.sizes.memory import GIB, MemoryNeeded
from lora.trainings.memory_shared import Sharing, sharing
from store.records import ServerRecord, TrainingRecord

SMALL_GIB = 0.1
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """`name` says who in words; `server_id` is that of a server of ours, which can be stopped."""

    name: str
    gib: float
    pid: int
    server_id: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryFree:
    """`device` is for a person: "GPU 0 (NVIDIA H200)". None is what cannot be read. `holders`, most first; GPU memory
    may be held by processes that cannot be seen from a container, then it is empty. `trainings` are those of ours that
    run on it."""

    device: str
    gpu: bool
    free_gib: float | None
    total_gib: float | None
    holders: tuple[Holder, ...] = ()
    trainings: tuple[Sharing, ...] = ()

    @property
    def left_gib(self) -> float | None:
        """What is free once the trainings that run have taken all they need."""
        return None if self.free_gib is None else self.free_gib - sum(one.more_gib for one in self.trainings)

    @property
    def shared(self) -> str | None:
        """Who computes there, too; None where nobody does."""
        if not self.trainings:
            return None
        names = ", ".join(one.called for one in self.trainings[:SHOWN])
        if len(self.trainings) == 1:
            return f"{names} computes there too: both take longer until one ends"
        return f"{names} compute there too: each takes longer until the others end"


def memory_free(
    environ: Mapping[str, str], servers: Sequence[ServerRecord] = (), trainings: Sequence[TrainingRecord] = ()
) -> MemoryFree:
    """The memory that a training started with `environ` would have now; `servers` are those of ours that run,
    `trainings` may be all. Asks the driver and walks /proc: tens of milliseconds, so not on the thread of a screen."""
    reader = GpuReader()
    try:
        reading = as_server_sees(reader.read(), environ)
    finally:
        reader.close()
    if reading.gpus:
        seen = {process.pid: process.used_gib or 0.0 for process in reading.gpus[0].processes}
        return replace(on_gpu(reading, servers), trainings=sharing(trainings, True, lambda one: held_on_gpu(one, seen)))
    free = in_main_memory(read_memory(), found_servers(), servers)
    return replace(free, trainings=sharing(trainings, False, lambda one: _resident_gib(one.pid) if one.pid else 0.0))


def held_on_gpu(training: TrainingRecord, seen: Mapping[int, float]) -> float | None:
    """Of a GPU on which the processes `seen` hold so many GiB. One that has made steps and is not among them is on
    another GPU."""
    if training.pid is not None and training.pid in seen:
        return seen[training.pid]
    return None if training.step else 0.0


def on_gpu(
    reading: GpuReading,
    servers: Sequence[ServerRecord],
    owners_of: Callable[[Iterable[int], Sequence[ServerRecord]], Owners] = find_owners,
) -> MemoryFree:
    """Of the first GPU that the training sees, the one it uses."""
    gpu = reading.gpus[0]
    owners = owners_of([process.pid for process in gpu.processes], servers)
    ids = {server_name(server): server.id for server in servers}
    holders = []
    for process in gpu.processes:
        if process.used_gib is None or process.used_gib < SMALL_GIB:
            continue
        owner = owners.get(process.pid)
        number = ids.get(owner.server) if owner is not None and owner.server is not None else None
        holders.append(Holder(held_by(process, owner), process.used_gib, process.pid, number))
    return MemoryFree(_called(gpu), True, gpu.mem_free_gib, gpu.mem_total_gib, _most_first(holders))


def in_main_memory(
    reading: MemoryReading,
    found: Sequence[FoundServer],
    servers: Sequence[ServerRecord],
    resident: Callable[[int], float] | None = None,
) -> MemoryFree:
    """Of the machine or its container; of those who hold it the vLLM servers are named, whoever started them."""
    free, total = usable(reading)
    ours = {server.pid: server for server in servers if server.pid is not None}
    holders = []
    for one in found:
        gib = (resident or _resident_gib)(one.pid)
        if gib >= SMALL_GIB:
            server = ours.get(one.pid)
            who = clean(one.name, 60) if server is None else server_name(server)
            holders.append(
                Holder(f"pid {one.pid} ({who}) {gib:.1f} GiB", gib, one.pid, None if server is None else server.id)
            )
    return MemoryFree("main memory", False, free / GIB, total / GIB, _most_first(holders))


def shortage(needed: MemoryNeeded, free: MemoryFree) -> str | None:
    """One line where the training does not fit now, with who holds the memory and what helps; None where it does, or
    where that cannot be told."""
    if free.free_gib is None or free.left_gib is None or needed.total_gib <= free.left_gib:
        return None
    said = f"the training needs about {needed.total_gib:.1f} GiB, {free.device} has {free.free_gib:.1f} GiB free"
    if free.total_gib is not None:
        said += f" of {free.total_gib:.1f} GiB"
    coming = [one for one in free.trainings if one.more_gib >= SMALL_GIB]
    if coming:
        said += f", of which {', '.join(f'{one.called} is to take {one.more_gib:.1f} GiB' for one in coming[:SHOWN])}"
    if coming and needed.total_gib <= free.free_gib:
        return f"{said}: wait until it ends, or stop it (`llmtune lora stop {coming[0].training_id}`)"
    if free.holders:
        said += f"; held by {', '.join(holder.name for holder in free.holders[:SHOWN])}"
    elif free.gpu and free.total_gib is not None and free.total_gib - free.free_gib > 1.0:
        said += "; held by processes that cannot be seen from here"
    if any(holder.server_id is not None for holder in free.holders):
        return f"{said}: stop that server first, or train with less (--batch, --max-length)"
    if free.total_gib is not None and needed.total_gib > free.total_gib:
        return f"{said}: more than there is at all, take --batch 1, a smaller --max-length, or a smaller model"
    if free.trainings:
        return f"{said}: wait until {free.trainings[0].called} ends, or train with less (--batch, --max-length)"
    return f"{said}: end what holds it, or train with less (--batch, --max-length)"


def _called(gpu: GpuSample) -> str:
    name = f" ({clean(gpu.name, 40)})" if gpu.name else ""
    return f"GPU {gpu.index}{name}"


def _most_first(holders: Iterable[Holder]) -> tuple[Holder, ...]:
    return tuple(sorted(holders, key=lambda holder: -holder.gib))


def _resident_gib(pid: int) -> float:
    """The memory of a process and its descendants that is theirs alone (shared pages, such as weights that are mapped
    from a file, can be dropped)."""
    import psutil

    total = 0
    for each in (pid, *(child.pid for child in descendants(pid))):
        try:
            memory = psutil.Process(each).memory_info()
        except psutil.Error:
            continue
        total += memory.rss - memory.shared
    return total / GIB
