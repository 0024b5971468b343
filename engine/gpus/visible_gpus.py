"""Which of the machine's GPUs a server sees, and in which order: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.

https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.launch.command import flag_name
from engine.records import GpuReading, GpuSample
from engine.text import clean

_SPLITS = ("tensor-parallel-size", "pipeline-parallel-size", "prefill-context-parallel-size")
_SPLITTING = ("-tp", "-pp", "-pcp", "-dp")
# Ranks on other machines, or of other servers.
_SPREAD = (
    "nnodes", "node-rank", "headless", "data-parallel-address", "data-parallel-rank", "data-parallel-external-lb",
    "data-parallel-hybrid-lb",
)  # fmt: skip
_NAMES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")


def as_server_sees(reading: GpuReading, environ: Mapping[str, str], used: int | None = None) -> GpuReading:
    """The reading with the GPUs of a server that was started with `environ` alone, its first one first, and how many
    of them it uses. Where that leaves none, or an order that cannot be known, `note` says so."""
    indices = visible_indices(environ, reading.gpus)
    if not reading.gpus:
        return reading
    note = reading.note or visible_note(environ, reading.gpus)
    if indices is None:
        return replace(reading, note=note, used=used)
    by_index = {gpu.index: gpu for gpu in reading.gpus}
    gpus = tuple(by_index[index] for index in indices if index in by_index)
    if reading.note and any(gpu.error for gpu in reading.gpus) and not any(gpu.error for gpu in gpus):
        note = visible_note(environ, reading.gpus)  # it was said of another's GPU
    return replace(reading, gpus=gpus, note=note, used=used)


def gpus_used(flags: Mapping[str, Any], extra_args: Sequence[str] = ()) -> int | None:
    """How many GPUs of this machine `vllm serve` with these flags computes on: one a rank, from the first it sees. None
    where its ranks may be spread over machines or servers, a size is no number, or `extra_args` may say another."""
    given = {flag_name(name): value for name, value in flags.items()}
    if any(name in given for name in _SPREAD) or given.get("distributed-executor-backend") == "ray":
        return None
    if any(argument.startswith(_SPLITTING) or "-parallel-size" in argument for argument in extra_args):
        return None
    sizes = [given.get(name, 1) for name in _SPLITS]
    sizes.append(given.get("data-parallel-size-local", given.get("data-parallel-size", 1)))
    try:
        return max(1, math.prod(int(size) for size in sizes))
    except (TypeError, ValueError):
        return None


def visible_indices(environ: Mapping[str, str], gpus: Sequence[GpuSample] = ()) -> tuple[int, ...] | None:
    """The physical indices that CUDA_VISIBLE_DEVICES lets a process use, in its order; None where it is not set (all).

    UUIDs, which may be shortened as CUDA allows, are looked up among `gpus`. As in CUDA the list ends at its first
    entry that names no GPU; an entry for a MIG slice is passed over, since its GPU's figures are not the slice's.
    Numbers are taken as PCI order, which is CUDA's own with CUDA_DEVICE_ORDER=PCI_BUS_ID or where all GPUs are alike.
    """
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return None
    indices: list[int] = []
    for entry in (part.strip() for part in listed.split(",")):
        if entry.startswith("MIG-"):
            continue
        index = _index(entry, gpus)
        if index is None:
            break
        if index not in indices:
            indices.append(index)
    return tuple(indices)


def visible_note(environ: Mapping[str, str], gpus: Sequence[GpuSample]) -> str | None:
    """One line where the GPUs that are shown may not be the server's, or why none is."""
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    indices = visible_indices(environ, gpus)
    if listed is not None and not indices:
        if "MIG-" in listed:
            return "The server runs on a MIG slice, whose figures NVML does not tell apart from its GPU's."
        if listed.strip() in ("", "-1"):
            return f"No GPU for this server: its CUDA_VISIBLE_DEVICES is {'empty' if not listed.strip() else '-1'}."
        return f"CUDA_VISIBLE_DEVICES={clean(listed, 60)} names no GPU of this machine."
    numbered = listed is not None and any(part.strip().isdecimal() for part in listed.split(","))
    if numbered and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and len({gpu.name for gpu in gpus}) > 1:
        return (
            "These may not be the server's GPUs: they differ, and CUDA numbers them by speed unless CUDA_DEVICE_ORDER "
            "is PCI_BUS_ID."
        )
    return None


def cuda_environ(pid: int, proc: Path = Path("/proc")) -> dict[str, str]:
    """The variables that decide it, as a process of ours or another's was started with; {} where they cannot be
    read."""
    try:
        variables = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    found = (variable.decode("utf-8", "replace").partition("=") for variable in variables)
    return {name: value for name, _, value in found if name in _NAMES}


def _index(entry: str, gpus: Sequence[GpuSample]) -> int | None:
    if entry.isascii() and entry.isdecimal() and len(entry) < 6:
        index = int(entry)
        return index if not gpus or any(gpu.index == index for gpu in gpus) else None
    matches = [gpu.index for gpu in gpus if entry.startswith("GPU-") and gpu.uuid and gpu.uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None
