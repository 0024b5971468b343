"""Who holds GPU memory, in words, for a start that found too little free. Only shown; nothing is signalled."""

from collections.abc import Callable, Collection, Mapping, Sequence

from engine.gpu import GpuReader
from engine.records import GpuSample
from engine.text import clean
from engine.visible_gpus import as_server_sees

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


def holders(gpus: Sequence[GpuSample], ours: Collection[int] = ()) -> str | None:
    """ "VLLM::EngineCore (process 3364) 19.0 GiB, process 77 1.2 GiB", most memory first, without the pids of `ours`;
    None where the driver shows nobody. In a container its pids may be the host's."""
    found = [
        (process.used_gib, process)
        for gpu in gpus
        for process in gpu.processes
        if process.pid not in ours and process.used_gib is not None and process.used_gib >= _SMALL_GIB
    ]
    found.sort(key=lambda each: -each[0])
    named = [
        (f"{clean(process.name, 60)} (process {process.pid})" if process.name else f"process {process.pid}")
        + f" {used:.1f} GiB"
        for used, process in found[:_SHOWN]
    ]
    return ", ".join(named) or None
