"""The samples of a while as readings of each engine: how long each stands for, and what a scheduler and GPUs did then.

A gauge of vLLM's scheduler is written at the end of a step and stands until the end of the next, so a reading stands
for the time since the one before. Requests that arrive during a step join the queue only before the next is scheduled:
what counts as waiting was really not let in (EngineCore.run_busy_loop and Scheduler.make_stats of V1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine.numbers import finite
from engine.records import Histogram
from engine.samples.sample_record import histogram_of, kept_engines, kept_gpus
from engine.scrape.histograms import between
from store.records import SampleRecord

Timed = Sequence[tuple[float, SampleRecord]]  # (unix seconds, sample), ascending

LONGEST_S, LONGEST_TIMES = 5.0, 4.0
"""A pause of the sampling counts for so many seconds, or for so many usual intervals, at most: what was meanwhile is
not known."""

# Names of engine.gpus.gpu.THROTTLE_REASONS. Clocks that somebody set lower are no throttling.
POWER_REASONS = frozenset({"power cap", "power brake"})
HEAT_REASONS = frozenset({"software thermal", "hardware thermal", "hardware slowdown"})
AT_THE_LIMIT = 0.98
"""Share of the power limit from which a GPU is taken to be capped where its reasons cannot be read: the cap regulates
to within about one per cent of the limit."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One engine at the end of `seconds`. `waiting` are requests for which there is no room; `deferred` wait for
    something else (a grammar, a remote KV cache, a slot for an adapter)."""

    seconds: float
    running: float | None
    waiting: float | None
    deferred: float
    kv_perc: float | None
    preempted: float

    @property
    def answered(self) -> bool:
        """Whether it is known what ran and what waited."""
        return self.running is not None and self.waiting is not None


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """The GPUs over the readings in which requests ran: means, and for how long they were throttled. None: not
    readable."""

    util_perc: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: float | None = None
    clock_most_mhz: float | None = None
    seconds: float = 0.0  # how long they were looked at
    capped_s: float = 0.0
    hot_s: float = 0.0

    @property
    def power_share(self) -> float | None:
        """Of the limit, 0 to 1."""
        return self.power_w / self.power_limit_w if self.power_w is not None and self.power_limit_w else None


def engine_readings(timed: Timed) -> dict[str, tuple[Reading, ...]]:
    """The readings of each engine by its name; of a server that has one, under "". The first sample has no time that
    it stands for and gives no reading."""
    stands = _seconds(timed)
    names = [str(each.get("engine")) for each in kept_engines(timed[-1][1])] if timed else []
    if len(names) < 2:
        return {"": tuple(_reading(seconds, before, now) for seconds, before, now in stands)}
    return {name: tuple(_of_engine(seconds, before, now, name) for seconds, before, now in stands) for name in names}


def _seconds(timed: Timed) -> list[tuple[float, SampleRecord, SampleRecord]]:
    pairs = [(now_at - before_at, before, now) for (before_at, before), (now_at, now) in pairwise(timed)]
    usual = sorted(passed for passed, _, _ in pairs)[len(pairs) // 2] if pairs else 0.0
    most = max(LONGEST_S, LONGEST_TIMES * usual)
    return [(min(passed, most), before, now) for passed, before, now in pairs]


def _reading(seconds: float, before: SampleRecord, now: SampleRecord) -> Reading:
    reasons = now.raw.get("waiting_by_reason")
    deferred = finite(reasons.get("deferred")) if isinstance(reasons, Mapping) else None
    waiting = now.waiting
    if waiting is not None and deferred:
        waiting = max(0.0, waiting - deferred)
    return Reading(
        seconds, now.running, waiting, deferred or 0.0, now.kv_perc, _grown(before.preemptions, now.preemptions)
    )


def _of_engine(seconds: float, before: SampleRecord, now: SampleRecord, name: str) -> Reading:
    old, new = ({str(each.get("engine")): each for each in kept_engines(one)}.get(name, {}) for one in (before, now))
    return Reading(
        seconds,
        finite(new.get("running")),
        finite(new.get("waiting")),
        0.0,
        finite(new.get("kv_perc")),
        _grown(finite(old.get("preemptions")), finite(new.get("preemptions"))),
    )


def came_in(timed: Timed, name: str) -> Histogram | None:
    """What came into a histogram over the samples, all of one life of the server."""
    found = [kept for at in (0, -1) if (kept := histogram_of(timed[at][1], name))] if timed else []
    return between(*found) if len(found) == 2 else None


def gpu_load(timed: Timed, counts: Sequence[bool]) -> GpuLoad:
    """Of the GPUs that hold a process (all, where none is shown to hold one), over the readings that count, and of
    these where requests ran. Limits are as the newest of them says."""
    seen = capped = hot = 0.0
    util, power, clock = _Mean(), _Mean(), _Mean()
    newest: list[Mapping[str, Any]] = []
    for counted, (seconds, _, now) in zip(counts, _seconds(timed), strict=True):
        if not counted or not now.running or not (gpus := _gpus(now)):
            continue
        newest, seen = gpus, seen + seconds
        util.add(gpus, "util_perc", seconds)
        power.add(gpus, "power_w", seconds)
        clock.add(gpus, "sm_clock_mhz", seconds)
        held = [_held_back(gpu) for gpu in gpus]
        capped += seconds * any(by_power for by_power, _ in held)
        hot += seconds * any(by_heat for _, by_heat in held)
    limits = [finite(gpu.get("power_limit_w")) for gpu in newest]
    most = [finite(gpu.get("sm_clock_max_mhz")) for gpu in newest]
    return GpuLoad(
        util.value,
        None if power.value is None else power.value * len(newest),
        None if None in limits or not limits else sum(limit or 0.0 for limit in limits),
        clock.value,
        None if None in most or not most else min(each or 0.0 for each in most),
        seen,
        capped,
        hot,
    )


class _Mean:
    """The mean of a figure over GPUs and time; a reading that one of them lacks is left out: a figure of some would be
    wrong."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def add(self, gpus: Sequence[Mapping[str, Any]], name: str, seconds: float) -> None:
        total = 0.0
        for gpu in gpus:
            value = finite(gpu.get(name))
            if value is None:
                return
            total += value
        self._sum += total / len(gpus) * seconds
        self._weight += seconds

    @property
    def value(self) -> float | None:
        return self._sum / self._weight if self._weight else None


def _held_back(gpu: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether power, and whether heat, holds it back."""
    given = gpu.get("throttle_reasons")
    if isinstance(given, list):
        if not given:
            return False, False
        reasons = {str(each) for each in given}
        return not POWER_REASONS.isdisjoint(reasons), not HEAT_REASONS.isdisjoint(reasons)
    power, limit = finite(gpu.get("power_w")), finite(gpu.get("power_limit_w"))
    return power is not None and bool(limit) and power >= AT_THE_LIMIT * (limit or 0.0), False


def _gpus(sample: SampleRecord) -> list[Mapping[str, Any]]:
    found = kept_gpus(sample)
    return [gpu for gpu in found if gpu.get("processes")] or found


def _grown(before: float | None, now: float | None) -> float:
    return max(0.0, now - before) if before is not None and now is not None else 0.0
