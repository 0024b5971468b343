"""How many processes the kernel has killed for want of memory: what tells such a SIGKILL from another."""

from pathlib import Path

_COUNTERS = (
    # Every kill of the machine, those of a container's own limit too (mm/oom_kill.c, since Linux 4.13).
    ("proc/vmstat", "oom_kill"),
    # Those of our container alone: cgroup v2 (Documentation/admin-guide/cgroup-v2.rst), then v1 (memory.rst).
    ("sys/fs/cgroup/memory.events", "oom_kill"),
    ("sys/fs/cgroup/memory/memory.oom_control", "oom_kill"),
)


def oom_kills(root: Path = Path("/")) -> dict[str, int]:
    """The counters that can be read, by file; they only rise. Empty where there is none."""
    found: dict[str, int] = {}
    for file, name in _COUNTERS:
        try:
            lines = (root / file).read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:  # another kernel, or a container that hides it
            continue
        for line in lines:
            key, _, value = line.partition(" ")
            if key == name and value.strip().isdigit():
                found[file] = int(value)
    return found


def killed_since(before: dict[str, int], now: dict[str, int]) -> bool | None:
    """Whether any counter rose; None where none can be compared."""
    both = before.keys() & now.keys()
    return any(now[file] > before[file] for file in both) if both else None
