"""Who holds GPU memory, in words, for a start that found too little free. Only shown; nothing is signalled."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from engine.gpu_owners import Owners, find_owners, held_by
from engine.gpus.gpu import GpuReader
from engine.gpus.visible_gpus import as_server_sees
from engine.records import GpuSample

LookAtGpus = Callable[[], tuple[GpuSample, ...]]

_SHOWN = 3
_SMALL_GIB = 0.1


def visible_gpus(gpu: GpuReader, environ: Mapping[str, str]) -> LookAtGpus:
    """What reads the GPUs that `environ` lets a server see; () without any."""

    def look() -> tuple[GpuSample, ...]:
        return as_server_sees(gpu.read(), environ).gpus

    return look


def smallest_total_gib(gpus: Sequence[GpuSample]) -> float | None:
    """The memory of the smallest of them, which decides what fits on each; None where it cannot be read."""
    return min((gpu.mem_total_gib for gpu in gpus if gpu.mem_total_gib), default=None)


def holders(
    gpus: Sequence[GpuSample],
    ours: Collection[int] = (),
    owners_of: Callable[[Iterable[int]], Owners] = find_owners,
) -> str | None:
    """ "pid 3364 (VLLM::EngineCore) 19.0 GiB, pid 77 1.2 GiB", most memory first, without the pids of `ours`; None
    where the driver shows nobody."""
    found = [
        process
        for gpu in gpus
        for process in gpu.processes
        if process.pid not in ours and process.used_gib is not None and process.used_gib >= _SMALL_GIB
    ]
    found.sort(key=lambda process: -(process.used_gib or 0.0))
    owners = owners_of(process.pid for process in found[:_SHOWN])
    return ", ".join(held_by(process, owners[process.pid]) for process in found[:_SHOWN]) or None
