"""The GPUs, their driver, and who holds their memory."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from engine.gpu_owners import ANOTHER, UNSEEN, Owner, find_owners, held_by
from engine.gpus.gpu import GpuReader
from engine.preflight.check import Check
from engine.preflight.installation import VllmReading, for_cpu
from engine.records import GpuReading, GpuSample

# The oldest driver for each major version of CUDA, any minor one
# (https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html).
OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}
# What `vllm serve` asks for where it is not told (0.9 before 0.20).
DEFAULT_UTILIZATION = 0.92
HARDLY_USED_GIB = 1.0


@dataclass(frozen=True, slots=True)
class GpuMachine:
    """`here` are those pids of the reading that are processes which can be seen from here."""

    reading: GpuReading
    here: frozenset[int] = frozenset()


def read_gpus() -> GpuMachine:
    reader = GpuReader()
    try:
        reading = reader.read()
    finally:
        reader.close()
    pids = {process.pid for gpu in reading.gpus for process in gpu.processes}
    owners = find_owners(pids)
    return GpuMachine(reading, frozenset(pid for pid in pids if owners[pid].whose != "unseen"))


def gpu_checks(machine: GpuMachine, vllm: VllmReading | None, ours: Mapping[int, str]) -> list[Check]:
    """`vllm` None: nothing is known of it. `ours` names the processes of our servers by pid."""
    reading = machine.reading
    cpu = vllm is not None and for_cpu(vllm)
    if not reading.gpus:
        return [_none_found(reading, vllm, cpu)]
    silent = [gpu for gpu in reading.gpus if gpu.mem_total_gib is None]
    checks = [_presence(reading, cpu, bool(silent))]
    if vllm is not None and vllm.torch is not None and vllm.torch.cuda is not None:
        checks.append(_driver(reading, vllm.torch.cuda))
    for gpu in reading.gpus:
        if gpu.mem_total_gib is not None and gpu.mem_free_gib is not None:
            checks.append(_memory(gpu, gpu.mem_total_gib, gpu.mem_free_gib, machine.here, ours))
        if gpu.ecc_errors:
            found = f"{gpu.ecc_errors:.0f} uncorrected memory errors since the driver was loaded"
            checks.append(Check(f"GPU {gpu.index} ECC", "warning", found, "ask for another machine, or reset the GPU"))
    return checks


def _none_found(reading: GpuReading, vllm: VllmReading | None, cpu: bool) -> Check:
    note = reading.note or "No GPU."
    if cpu:
        return Check("GPU", "ok", f"{note} This vLLM runs on the CPU.")
    advice = "start the container with its GPUs (docker: --gpus all), or take a vLLM built for the CPU"
    if vllm is None or vllm.installation is None:
        return Check("GPU", "warning", note, advice)
    return Check("GPU", "problem", note, advice)


def _presence(reading: GpuReading, cpu: bool, silent: bool) -> Check:
    names = [gpu.name or "GPU without a name" for gpu in reading.gpus]
    counted = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
    found = f"{counted}, driver {reading.driver or 'unknown'}, up to CUDA {reading.cuda or 'unknown'}"
    if silent:
        return Check("GPU", "problem", f"{found}. {reading.note or ''}".strip(), "reboot, or ask for another machine")
    if cpu:
        return Check("GPU", "warning", found, "this vLLM is built for the CPU: install one for CUDA to use the GPU")
    return Check("GPU", "ok", found)


def _driver(reading: GpuReading, cuda: str) -> Check:
    wanted, major = _major(cuda), _major(reading.driver)
    oldest = OLDEST_DRIVER.get(wanted) if wanted is not None else None
    # libcuda's own version is newer than the driver's where a forward compatibility package is in use.
    provided = _major(reading.cuda)
    if wanted is not None and provided is not None and provided >= wanted:
        return Check("driver", "ok", f"{reading.driver} serves torch's CUDA {cuda}")
    if major is None or oldest is None:
        found = f"driver {reading.driver or 'unknown'}, torch built for CUDA {cuda}: nothing is known of this pair"
        return Check("driver", "warning", found, "if a start fails with a driver error, update the driver")
    if major >= oldest:
        return Check("driver", "ok", f"{reading.driver} serves torch's CUDA {cuda}")
    return Check(
        "driver",
        "problem",
        f"{reading.driver} is too old for torch's CUDA {cuda}, which needs {oldest} or later",
        f"update the driver to {oldest} or later, or install a vLLM whose torch is built for an older CUDA",
    )


def _memory(gpu: GpuSample, total: float, free: float, here: frozenset[int], ours: Mapping[int, str]) -> Check:
    name = f"GPU {gpu.index} memory"
    share = free / total if total else 0.0
    found = f"{free:.1f} of {total:.1f} GiB free"
    holders = [held_by(process, _owner(process.pid, here, ours)) for process in gpu.processes]
    if holders:
        found = f"{found}, held by {', '.join(holders)}"
    elif total - free > HARDLY_USED_GIB + (gpu.mem_reserved_gib or 0.0):
        found = f"{found}, held by processes that cannot be seen from here"
    if share >= DEFAULT_UTILIZATION:
        return Check(name, "ok", found)
    mine = [ours[process.pid] for process in gpu.processes if process.pid in ours and process.pid in here]
    end = "stop the server of ours that holds it" if mine else "have its holder ended"
    fits = math.floor(share * 100) / 100
    if fits < 0.1:
        return Check(name, "problem", found, f"{end}: no vLLM starts in what is left")
    advice = f"{end}, or start with --gpu-memory-utilization {fits:g}: the default asks for {DEFAULT_UTILIZATION:g}"
    return Check(name, "warning", found, advice)


def _owner(pid: int, here: frozenset[int], ours: Mapping[int, str]) -> Owner:
    if pid not in here:
        return UNSEEN
    return Owner("ours", ours[pid]) if pid in ours else ANOTHER


def _major(version: str | None) -> int | None:
    head = (version or "").partition(".")[0]
    return int(head) if head.isdecimal() else None
