"""The host's memory, and the limit that a container puts on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.preflight.check import GIB, Check, gib

# vLLM's processes take about 4 to 6 GiB of host memory before the weights pass through it.
LITTLE, TOO_LITTLE = 8 * GIB, 2 * GIB
# cgroup v1 says "no limit" with the largest multiple of a page that fits into 63 bits.
_UNLIMITED = 2**60


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """Bytes. `limit` is the container's, None without one, `limit_used` what counts against it and cannot be dropped
    (page cache left out). `kills`: processes killed there for want of memory, None where that is not counted."""

    total: int
    available: int
    limit: int | None = None
    limit_used: int | None = None
    kills: int | None = None


def read_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> MemoryReading:
    """From /proc/meminfo and the memory controller of cgroup v2 or v1. Raises OSError without /proc."""
    facts = _numbers((proc / "meminfo").read_text())
    tightest: tuple[int, int] | None = None
    kills = None
    for folder in _folders((proc / "self" / "cgroup").read_text(), cgroups):
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
        if kills is None:
            kills = _told(folder / "memory.events").get("oom_kill")
        if limit is None or used is None or limit >= _UNLIMITED or (tightest and limit >= tightest[0]):
            continue
        stat = _told(folder / "memory.stat")
        tightest = limit, max(used - stat.get("total_inactive_file", stat.get("inactive_file", 0)), 0)
    limit, used = tightest or (None, None)
    return MemoryReading(facts["MemTotal"] * 1024, facts["MemAvailable"] * 1024, limit, used, kills)


def usable(reading: MemoryReading) -> tuple[int, int]:
    """Bytes that can be had now, and those there are in all: of the machine, or of the container's tighter limit."""
    if reading.limit is None or reading.limit >= reading.total:
        return reading.available, reading.total
    return min(reading.available, max(reading.limit - (reading.limit_used or 0), 0)), reading.limit


def memory_check(reading: MemoryReading) -> Check:
    available, total = usable(reading)
    where = " of this container's limit" if total < reading.total else ""
    found = f"{gib(available)} of {gib(total)}{where} available"
    if reading.kills:
        found = f"{found}; {reading.kills} processes were killed here for want of memory"
    if available < TOO_LITTLE:
        return Check("memory", "problem", found, "end something, or take a machine or container with more: vLLM dies")
    if available < LITTLE or reading.kills:
        advice = "vLLM's processes take 4 to 6 GiB beside the GPU's: keep that free while a server starts"
        return Check("memory", "warning", found, advice)
    return Check("memory", "ok", found)


def _folders(own: str, root: Path) -> Iterator[Path]:
    """The cgroup of this process and those above it, each of which may have a limit. Lines of /proc/self/cgroup are
    `0::/path` (v2) and `7:memory:/path` (v1); a path of the host's that is not mounted here leaves the root."""
    for line in own.splitlines():
        number, controllers, path = line.split(":", 2)
        if number != "0" and "memory" not in controllers.split(","):
            continue
        base = root if number == "0" else root / "memory"
        folder = base / path.lstrip("/")
        while folder != base and base in folder.parents:
            yield folder
            folder = folder.parent
        yield base


def _numbers(meminfo: str) -> dict[str, int]:
    """KiB by name."""
    parts = (line.replace(":", " ").split() for line in meminfo.splitlines())
    return {fields[0]: int(fields[1]) for fields in parts if len(fields) >= 2}


def _number(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _told(file: Path) -> dict[str, int]:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines)
    return {fields[0]: int(fields[1]) for fields in pairs if len(fields) == 2 and fields[1].isdecimal()}
