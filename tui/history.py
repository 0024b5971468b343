"""From counters and gauges as they were sampled to what the Monitor shows: rates, shares, slots of time. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from store.clock import parse_utc
from store.records import SampleRecord

RATE_S = 5.0  # a rate "now" is the mean over this long: shorter ones flicker with the batches
BRIDGE = 2.5  # a slot without a sample repeats its neighbour up to this many sampling intervals

Point = tuple[float, float | None]
"""Unix seconds and what was read then."""


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One GPU now, with the recent utilization. Without per-GPU readings, the sums over those that the server uses."""

    index: str
    model: str = ""
    used_gib: float | None = None
    total_gib: float | None = None
    util_perc: float | None = None
    power_w: float | None = None
    limit_w: float | None = None
    temp_c: float | None = None
    clock_mhz: float | None = None
    throttled: tuple[str, ...] | None = None  # () is not throttled, None cannot be read
    util: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """What the Monitor draws, each quantity over the same moments. Counters as they stood."""

    kv_perc: tuple[Point, ...] = ()
    running: tuple[Point, ...] = ()
    waiting: tuple[Point, ...] = ()
    preemptions: tuple[Point, ...] = ()
    prompt_tokens: tuple[Point, ...] = ()
    generation_tokens: tuple[Point, ...] = ()
    prefix_queries: tuple[Point, ...] = ()
    prefix_hits: tuple[Point, ...] = ()
    requests: tuple[Point, ...] = ()  # finished, whatever the reason
    gpus: tuple[GpuRow, ...] = ()
    waiting_by_reason: tuple[tuple[str, float], ...] = ()  # of the newest sample
    utilization: float | None = None  # gpu-memory-utilization as the server told it last

    @property
    def answered_at(self) -> float | None:
        """When the server last answered, in unix seconds."""
        return next((at for at, value in reversed(self.running) if value is not None), None)

    @property
    def sampled_at(self) -> float | None:
        """Unix seconds of the newest sample, whatever could be read then."""
        return self.running[-1][0] if self.running else None


NOTHING = Series()


def read_series(samples: Sequence[SampleRecord]) -> Series:
    """The series of samples in time order."""
    times = [_at(sample) for sample in samples]

    def points(read: Callable[[SampleRecord], object]) -> tuple[Point, ...]:
        return tuple((at, _finite(read(sample))) for at, sample in zip(times, samples, strict=True))

    newest = samples[-1].raw.get("waiting_by_reason") if samples else None
    reasons = newest if isinstance(newest, dict) else {}
    told = (_finite(sample.raw.get("gpu_memory_utilization")) for sample in reversed(samples))
    return Series(
        utilization=next((share for share in told if share is not None), None),
        kv_perc=points(lambda sample: sample.kv_perc),
        running=points(lambda sample: sample.running),
        waiting=points(lambda sample: sample.waiting),
        preemptions=points(lambda sample: sample.preemptions),
        prompt_tokens=points(lambda sample: sample.prompt_tokens),
        generation_tokens=points(lambda sample: sample.generation_tokens),
        prefix_queries=points(lambda sample: sample.prefix_queries),
        prefix_hits=points(lambda sample: sample.prefix_hits),
        requests=points(_requests),
        gpus=gpu_rows(samples),
        waiting_by_reason=tuple((str(why), n) for why, value in reasons.items() if (n := _finite(value)) is not None),
    )


def _requests(sample: SampleRecord) -> float | None:
    finished = sample.raw.get("requests_finished")
    if not isinstance(finished, dict):
        return None
    known = [value for each in finished.values() if (value := _finite(each)) is not None]
    return sum(known) if known else None


def latest(points: Sequence[Point]) -> float | None:
    """The newest reading, None where it could not be read."""
    return points[-1][1] if points else None


def within(points: Sequence[Point], seconds: float) -> Sequence[Point]:
    """The points of the last `seconds` before the newest."""
    return [point for point in points if point[0] > points[-1][0] - seconds]


def gauge(samples: Iterable[SampleRecord], read: Callable[[SampleRecord], float | None]) -> list[Point]:
    """One quantity of each sample over time."""
    return [(_at(sample), _finite(read(sample))) for sample in samples]


def rates(points: Sequence[Point]) -> list[Point]:
    """A counter's growth per second, at the later sample of each pair.

    None where either end is unknown and where the counter fell, which is a server that was restarted.
    """
    return [
        (later, _growth(before, now, later - earlier))
        for (earlier, before), (later, now) in pairwise(points)
        if later > earlier
    ]


def rate_now(points: Sequence[Point], over_s: float = RATE_S) -> float | None:
    """A counter's growth per second over the last `over_s` seconds of samples, since a restart if there was one."""
    if not points:
        return None
    end = points[-1][0]
    recent = [rate for rate in rates(points) if rate[0] > end - over_s]
    known = [(at, value) for at, value in recent if value is not None]
    return sum(value for _, value in known) / len(known) if known and recent[-1][1] is not None else None


def growth(points: Sequence[Point]) -> float | None:
    """How much a counter grew over all points; what a restart undid is counted from 0. None without two readings."""
    known = [value for _, value in points if value is not None]
    if len(known) < 2:
        return None
    return sum(now - before if now >= before else now for before, now in pairwise(known))


def share_perc(part: Sequence[Point], whole: Sequence[Point]) -> float | None:
    """The growth of one counter as a percentage of another's; None while the other did not grow."""
    grown, of = growth(part), growth(whole)
    return None if grown is None or not of else min(100.0, 100.0 * grown / of)


def interval(points: Sequence[Point]) -> float:
    """The usual seconds between samples (their median), 1 where there are too few."""
    steps = sorted(later - earlier for (earlier, _), (later, _) in pairwise(points))
    return max(0.1, steps[len(steps) // 2]) if steps else 1.0


def slots(points: Sequence[Point], end: float, window_s: float, count: int) -> list[float | None]:
    """The last `window_s` seconds until `end` as at most `count` slots, oldest first, each the mean of its samples.

    Slots stand on multiples of their length, so that a history moves by whole columns and its peaks do not dance. A
    slot is never shorter than the sampling interval; one without a sample is None, but for a gap of a single tick.
    """
    step = interval(points)
    length = max(window_s / count, step)
    last = math.floor(end / length)
    first = last - max(1, min(count, round(window_s / length))) + 1
    sums: dict[int, list[float]] = {}
    for at, value in points:
        if value is not None:
            sums.setdefault(math.floor(at / length), []).append(value)
    out: list[float | None] = []
    for slot in range(first, last + 1):
        values = sums.get(slot)
        if values is None and BRIDGE * step > length and slot < last and slot + 1 in sums:
            values = sums.get(slot - 1)
        out.append(None if values is None else sum(values) / len(values))
    return out


def gpu_rows(samples: Sequence[SampleRecord]) -> tuple[GpuRow, ...]:
    """The GPUs of the newest sample with their history; empty where none was read."""
    if not samples:
        return ()
    newest = samples[-1]
    listed = _gpus(newest)
    if listed:
        return tuple(_gpu_row(gpu, samples) for gpu in listed)
    if newest.gpu_mem_used_gib is None and newest.gpu_util_perc is None and newest.gpu_power_w is None:
        return ()
    return (
        GpuRow(
            "",
            used_gib=_finite(newest.gpu_mem_used_gib),
            util_perc=_finite(newest.gpu_util_perc),
            power_w=_finite(newest.gpu_power_w),
            util=tuple(gauge(samples, lambda sample: sample.gpu_util_perc)),
        ),
    )


def _gpus(sample: SampleRecord) -> list[dict[str, Any]]:
    gpus = sample.raw.get("gpus")
    return [gpu for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []


def _gpu_row(gpu: dict[str, Any], samples: Sequence[SampleRecord]) -> GpuRow:
    index, reasons = gpu.get("index"), gpu.get("throttle_reasons")

    def util(sample: SampleRecord) -> float | None:
        return next((_finite(other.get("util_perc")) for other in _gpus(sample) if other.get("index") == index), None)

    return GpuRow(
        str(index),
        str(gpu.get("name") or ""),
        used_gib=_finite(gpu.get("mem_used_gib")),
        total_gib=_finite(gpu.get("mem_total_gib")),
        util_perc=_finite(gpu.get("util_perc")),
        power_w=_finite(gpu.get("power_w")),
        limit_w=_finite(gpu.get("power_limit_w")),
        temp_c=_finite(gpu.get("temp_c")),
        clock_mhz=_finite(gpu.get("sm_clock_mhz")),
        throttled=tuple(map(str, reasons)) if isinstance(reasons, list) else None,
        util=tuple(gauge(samples, util)),
    )


def _growth(before: float | None, now: float | None, seconds: float) -> float | None:
    if before is None or now is None or now < before:
        return None
    return (now - before) / seconds


def _at(sample: SampleRecord) -> float:
    return parse_utc(sample.at).timestamp()


def _finite(value: object) -> float | None:
    """A reading as a finite float; raw JSON may hold anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
