"""What the kernel or the container allows a process: open files, locked memory, shared memory."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

from engine.preflight.check import GIB, Check, gib

# vLLM raises its soft limit to 65535 or to what the hard one allows (vllm/utils, set_ulimit).
MANY_FILES, FEW_FILES = 8192, 1024
LITTLE_LOCKED = GIB
# NCCL and vLLM's message queues between the workers of one server; Docker gives 64 MiB where it is not told.
LITTLE_SHARED = GIB


@dataclass(frozen=True, slots=True)
class LimitsReading:
    """`files` the hard limit of open files, `locked` the soft one of locked memory in bytes; None is no limit.
    `shared` and `shared_free` are /dev/shm's bytes, None where there is none."""

    files: int | None
    locked: int | None
    shared: int | None
    shared_free: int | None


def read_limits(shared: Path = Path("/dev/shm")) -> LimitsReading:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    size = free = None
    if shared.is_dir():
        facts = os.statvfs(shared)
        size, free = facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize
    return LimitsReading(_bounded(files), _bounded(locked), size, free)


def limits_checks(reading: LimitsReading, gpus: int) -> list[Check]:
    return [_files(reading.files), _locked(reading.locked, gpus), _shared(reading, gpus)]


def _files(files: int | None) -> Check:
    found = "no limit" if files is None else f"up to {files:,}"
    advice = "raise it before starting llmtune: ulimit -Hn 65535 as root, or docker's --ulimit nofile=65535"
    if files is not None and files < FEW_FILES:
        return Check("open files", "problem", found, advice)
    if files is not None and files < MANY_FILES:
        return Check("open files", "warning", f"{found}: each connection takes one", advice)
    return Check("open files", "ok", found)


def _locked(locked: int | None, gpus: int) -> Check:
    found = "no limit" if locked is None else f"up to {gib(locked)}"
    if gpus > 1 and locked is not None and locked < LITTLE_LOCKED:
        advice = "needed only for InfiniBand between machines: ulimit -l unlimited, or docker's --ulimit memlock=-1"
        return Check("locked memory", "warning", found, advice)
    return Check("locked memory", "ok", found)


def _shared(reading: LimitsReading, gpus: int) -> Check:
    name, more = "shared memory", "start the container with --ipc=host or --shm-size=8g"
    if reading.shared is None or reading.shared_free is None:
        return Check(name, "problem" if gpus > 1 else "warning", "there is no /dev/shm", more)
    found = f"/dev/shm has {gib(reading.shared_free)} of {gib(reading.shared)} free"
    if reading.shared_free >= LITTLE_SHARED:
        return Check(name, "ok", found)
    if gpus > 1:
        return Check(name, "problem", f"{found}: too little for a server over several GPUs", more)
    if reading.shared_free < reading.shared // 2:
        return Check(
            name, "warning", f"{found}: something has filled it", "see `ls -l /dev/shm` for what was left there"
        )
    return Check(name, "ok", f"{found}, enough for servers on one GPU")


def _bounded(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit
