"""Whether somebody else used the server's GPUs meanwhile: by the processes that NVML lists, and by memory that none of
them explains.

In a container NVML may list pids of the host, or nobody; the device's own memory is then all there is. A neighbour that
holds memory all the while is not told apart from one that computes: it is noted, and stands for every run alike.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.numbers import finite
from engine.text import clean
from store.records import SampleRecord
from tuning.checks.clocks import used_gpus
from tuning.checks.finding import Finding, RunFacts, moments, span

MOVED_GIB = 0.0625  # of a process of somebody else's: its own allocations come in steps of 2 to 20 MiB
UNLISTED_MOVED_GIB = 0.25  # of what no process explains: contexts of processes that come and go take as much
# With nobody listed it may be our server's too. Once warm an H200's moved by less than 0.01 GiB in 24 runs, by up to
# 1.4 GiB in the first warm-up, which is therefore not judged so.
UNKNOWN_MOVED_GIB = 1.0
_NAME_W = 60


@dataclass
class _Neighbour:
    """A process on one GPU that is not the server's: when it was seen, and with how much."""

    gpu: int
    pid: int
    name: str = ""
    seen: list[SampleRecord] = field(default_factory=list)
    held_gib: list[float] = field(default_factory=list)

    @property
    def moved_gib(self) -> float:
        return max(self.held_gib) - min(self.held_gib) if self.held_gib else 0.0

    def __str__(self) -> str:
        name = f" ({self.name})" if self.name else ""
        held = f" with {max(self.held_gib):.2f} GiB" if self.held_gib else ""
        return f"pid {self.pid}{name} on GPU {self.gpu}{held}"


def came_or_went(facts: RunFacts) -> Finding | None:
    """Another process came onto a GPU of the server, left it, or its memory moved."""
    for listed, each in _neighbours(facts):
        numbers: dict[str, Any] = {
            "pid": each.pid,
            "name": each.name,
            "gpu": each.gpu,
            "held_max_gib": max(each.held_gib, default=None),
            "moved_gib": each.moved_gib,
            "threshold_gib": MOVED_GIB,
            "seen_in": len(each.seen),
            "seen_from": each.seen[0].at,
            "seen_to": each.seen[-1].at,
            **span(listed),
        }
        if each.seen[0] is not listed[0]:
            return Finding("another process", f"another process came onto the GPU meanwhile: {each}", numbers)
        if len(each.seen) < len(listed):
            return Finding("another process", f"another process left the GPU meanwhile: {each}", numbers)
        if each.moved_gib > MOVED_GIB:
            reason = f"the memory of another process on the GPU moved by {each.moved_gib:.2f} GiB: {each}"
            return Finding("another process", reason, numbers)
    return None


def stayed(facts: RunFacts) -> Finding | None:
    """A note: other processes held memory of the server's GPUs throughout."""
    found = [each for _, each in _neighbours(facts)]
    if not found:
        return None
    numbers = {"pids": [each.pid for each in found], "held_gib": sum(max(each.held_gib, default=0.0) for each in found)}
    reason = f"shared with others throughout, which held still: {', '.join(map(str, found[:3]))}"
    return Finding("shared GPU", reason, numbers, rejects=False)


def unlisted_memory(facts: RunFacts) -> Finding | None:
    """Memory of a GPU that no listed process explains moved; where none is listed, its memory as a whole, by more."""
    samples = [(sample, used_gpus(sample, facts.uses)) for sample in facts.samples]
    for position in range(max((len(gpus) for _, gpus in samples), default=0)):
        gpus = [(sample, one[position]) for sample, one in samples if position < len(one)]
        unlisted = [(sample, rest) for sample, gpu in gpus if (rest := _unlisted_gib(gpu)) is not None]
        if unlisted:
            found = _moved(position, unlisted, UNLISTED_MOVED_GIB, "that no process explains")
        elif facts.measured:
            used = [(sample, value) for sample, gpu in gpus if (value := finite(gpu.get("mem_used_gib"))) is not None]
            found = _moved(position, used, UNKNOWN_MOVED_GIB, "moved though the server was warm, and")
        else:
            found = None
        if found is not None:
            return found
    return None


def _moved(position: int, series: Sequence[tuple[SampleRecord, float]], most_gib: float, what: str) -> Finding | None:
    # One reading may fall between an allocation and its entry in the process's own figure: it takes two.
    ordered = sorted(value for _, value in series)
    if len(ordered) < 4 or (moved := ordered[-2] - ordered[1]) <= most_gib:
        return None
    first = series[0][1]
    off = [sample for sample, value in series if abs(value - first) > most_gib / 2]
    numbers = {"gpu": position, "moved_gib": moved, "threshold_gib": most_gib, "at": moments(off)}
    listed = most_gib == UNLISTED_MOVED_GIB
    words = (
        f"memory of GPU {position} {what} moved by {moved:.2f} GiB"
        if listed
        else (f"the memory of GPU {position} {what} NVML lists no process: by {moved:.2f} GiB")
    )
    return Finding("another's memory", words, numbers | span([sample for sample, _ in series]))


def _unlisted_gib(gpu: Mapping[str, Any]) -> float | None:
    """Memory in use without that of the listed processes; None where that is not known of all of them, or of none."""
    used = finite(gpu.get("mem_used_gib"))
    held = [finite(each.get("used_gib")) for each in _processes(gpu)]
    if used is None or not held or None in held:
        return None
    return used - sum(each or 0.0 for each in held)


def _neighbours(facts: RunFacts) -> list[tuple[list[SampleRecord], _Neighbour]]:
    """(the samples in which the GPU's list was whole, a process that is not ours), the first that came first."""
    found: list[tuple[list[SampleRecord], _Neighbour]] = []
    samples = [(sample, used_gpus(sample, facts.uses)) for sample in facts.samples]
    for position in range(max((len(gpus) for _, gpus in samples), default=0)):
        lists = [(sample, _processes(gpus[position])) for sample, gpus in samples if position < len(gpus)]
        ours = _ours([each for _, each in lists], facts.pids)
        # A list without our own process was not read: drivers answer with an empty one now and then.
        whole = [(sample, each) for sample, each in lists if any(one.get("pid") in ours for one in each)]
        others: dict[int, _Neighbour] = {}
        for sample, processes in whole:
            for process in processes:
                pid = process.get("pid")
                if not isinstance(pid, int) or pid in ours:
                    continue
                one = others.setdefault(pid, _Neighbour(position, pid, clean(str(process.get("name") or ""), _NAME_W)))
                one.seen.append(sample)
                if (held := finite(process.get("used_gib"))) is not None:
                    one.held_gib.append(held)
        found += [([sample for sample, _ in whole], one) for one in others.values()]
    return found


def _ours(lists: Sequence[Sequence[Mapping[str, Any]]], pids: Collection[int]) -> frozenset[int]:
    """Which of the listed pids are the server's. Where none is (pids of the host), the one with the most memory in the
    first list is taken to be: vLLM takes nine tenths of a GPU."""
    listed = {process.get("pid") for one in lists for process in one}
    known = frozenset(pid for pid in pids if pid in listed)
    if known:
        return known
    first = next((one for one in lists if one), [])
    most = max(first, key=lambda process: finite(process.get("used_gib")) or 0.0, default=None)
    return frozenset() if most is None or not isinstance(most.get("pid"), int) else frozenset({most["pid"]})


def _processes(gpu: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = gpu.get("processes")
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
