"""Whether the GPUs ran at the clocks that they are made for, by NVML's clock event reasons.

https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.numbers import finite
from engine.samples.sample_record import kept_gpus
from store.records import SampleRecord
from tuning.checks.finding import Finding, RunFacts, moments, span

# Names of engine.gpus.gpu_fields.THROTTLE_REASONS that say something is wrong with the machine. "power cap" is none: a
# GPU under full load runs into its own power limit, the default's run as the candidate's, and what a configuration can
# do within that limit is what is asked for. On an H200 it stood in a fifth of the readings of each of three
# configurations, at a median draw of 57 % of the limit.
# Clocks that somebody set ("application clocks") hold for every run alike.
FAULTS = frozenset({"hardware slowdown", "hardware thermal", "software thermal", "power brake"})
# Half the clocks for 2 % of the time cost 1 %, half of the smallest effect that is looked for. With a reading a second
# and a run of less than 50 s a single one rejects it.
THROTTLED_PERC = 2.0
LIMIT_MOVED_W = 1.0  # the limit is a setting: it does not move by itself


def throttled(facts: RunFacts) -> Finding | None:
    """Readings of the load in which a GPU says that heat or hardware holds its clocks back."""
    read = _read(facts)
    found = [(sample, why) for sample, gpus in read if (why := _reasons(gpus) & FAULTS)]
    perc = 100 * len(found) / len(read) if read else 0.0
    if perc <= THROTTLED_PERC:
        return None
    names = sorted(frozenset().union(*(why for _, why in found)))
    slow = [sample for sample, _ in found]
    numbers = {
        "reasons": names,
        "throttled_perc": perc,
        "threshold_perc": THROTTLED_PERC,
        "at": moments(slow),
        **_clocks(facts, slow),
        **span([sample for sample, _ in read]),
    }
    reason = f"the GPU's clocks were held back ({', '.join(names)}) in {len(found)} of {len(read)} readings"
    return Finding("throttled", reason, numbers)


def capped(facts: RunFacts) -> Finding | None:
    """A note: for how long the GPUs ran into their power limit, or into clocks that somebody set."""
    read = _read(facts)
    found = [(sample, why) for sample, gpus in read if (why := _reasons(gpus) - FAULTS)]
    if not found:
        return None
    names = sorted(frozenset().union(*(why for _, why in found)))
    slow = [sample for sample, _ in found]
    numbers = {"reasons": names, "perc": 100 * len(found) / len(read), **_clocks(facts, slow), **span(slow)}
    reason = f"{', '.join(names)} in {len(found)} of {len(read)} readings, as any load may"
    return Finding("clocks", reason, numbers, rejects=False)


def limit_moved(facts: RunFacts) -> Finding | None:
    """Somebody set another power limit while it ran."""
    for position in range(max((len(gpus) for _, gpus in _read(facts)), default=0)):
        told = [(sample, _number(gpus, position, "power_limit_w")) for sample, gpus in _read(facts)]
        known = [(sample, limit) for sample, limit in told if limit is not None]
        limits = [limit for _, limit in known]
        if limits and max(limits) - min(limits) > LIMIT_MOVED_W:
            moved = [sample for sample, limit in known if abs(limit - limits[0]) > LIMIT_MOVED_W]
            numbers = {"from_w": limits[0], "to_w": limits[-1], "threshold_w": LIMIT_MOVED_W, "at": moments(moved)}
            reason = f"the power limit of GPU {position} was moved from {limits[0]:.0f} to {limits[-1]:.0f} W"
            return Finding("power limit", reason, numbers)
    return None


def used_gpus(sample: SampleRecord, uses: int | None) -> Sequence[Mapping[str, Any]]:
    """Those that the server computes on, which are the first that it sees."""
    return kept_gpus(sample)[:uses]


def _read(facts: RunFacts) -> list[tuple[SampleRecord, Sequence[Mapping[str, Any]]]]:
    """The samples of the load in which every GPU told its reasons."""
    found = [(sample, used_gpus(sample, facts.uses)) for sample in facts.load]
    return [
        (sample, gpus)
        for sample, gpus in found
        if gpus and all(isinstance(gpu.get("throttle_reasons"), list) for gpu in gpus)
    ]


def _reasons(gpus: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(reason) for gpu in gpus for reason in gpu["throttle_reasons"])


def _clocks(facts: RunFacts, slow: Sequence[SampleRecord]) -> dict[str, Any]:
    """Of these readings: the lowest clock, what it could be, the highest temperature, the limit."""

    def all_of(samples: Sequence[SampleRecord], name: str) -> list[float]:
        gpus = [gpu for sample in samples for gpu in used_gpus(sample, facts.uses)]
        return [value for gpu in gpus if (value := finite(gpu.get(name))) is not None]

    return {
        "sm_clock_min_mhz": min(all_of(slow, "sm_clock_mhz"), default=None),
        "sm_clock_max_mhz": max(all_of(facts.load, "sm_clock_mhz"), default=None),
        "temp_max_c": max(all_of(slow, "temp_c"), default=None),
        "power_limit_w": min(all_of(slow, "power_limit_w"), default=None),
    }


def _number(gpus: Sequence[Mapping[str, Any]], position: int, name: str) -> float | None:
    return finite(gpus[position].get(name)) if position < len(gpus) else None
