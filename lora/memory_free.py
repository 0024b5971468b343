"""How much memory is free for a training, and who holds the rest: a server of ours can be stopped, so it is named."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.discovery import FoundServer, found_servers
from engine.gpu_owners import Owners, find_owners, held_by, server_name
from engine.gpus.gpu import GpuReader
from engine.gpus.visible_gpus import as_server_sees
from engine.preflight.memory import MemoryReading, read_memory, usable
from engine.processes.process import descendants
from engine.records import GpuReading, GpuSample
from engine.text import clean
from lora.memory import GIB, MemoryNeeded
from store.records import ServerRecord

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
    may be held by processes that cannot be seen from a container, then it is empty."""

    device: str
    gpu: bool
    free_gib: float | None
    total_gib: float | None
    holders: tuple[Holder, ...] = ()


def memory_free(environ: Mapping[str, str], servers: Sequence[ServerRecord] = ()) -> MemoryFree:
    """The memory that a training started with `environ` would have now; `servers` are those of ours that run. Asks the
    driver and walks /proc: tens of milliseconds, so not on the thread of a screen."""
    reader = GpuReader()
    try:
        reading = as_server_sees(reader.read(), environ)
    finally:
        reader.close()
    if reading.gpus:
        return on_gpu(reading, servers)
    return in_main_memory(read_memory(), found_servers(), servers)


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
    if free.free_gib is None or needed.total_gib <= free.free_gib:
        return None
    said = f"the training needs about {needed.total_gib:.1f} GiB, {free.device} has {free.free_gib:.1f} GiB free"
    if free.total_gib is not None:
        said += f" of {free.total_gib:.1f} GiB"
    if free.holders:
        said += f"; held by {', '.join(holder.name for holder in free.holders[:SHOWN])}"
    elif free.gpu and free.total_gib is not None and free.total_gib - free.free_gib > 1.0:
        said += "; held by processes that cannot be seen from here"
    if any(holder.server_id is not None for holder in free.holders):
        return f"{said}: stop that server first, or train with less (--batch, --max-length)"
    if free.total_gib is not None and needed.total_gib > free.total_gib:
        return f"{said}: more than there is at all, take --batch 1, a smaller --max-length, or a smaller model"
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
