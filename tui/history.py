"""A quantity's history in columns of time, kept up as samples come, so that a draw costs its columns and not its
window. Pure.

Columns stand on multiples of their length, so that a history moves by whole columns and its peaks do not dance.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine.window import Read
from store.clock import parse_utc
from store.records import SampleRecord

BRIDGE = 2.5  # a sample also stands for the time since the one before it, up to so many usual intervals


class History:
    """One quantity of one server: a gauge, or with `counter` a total of which the growth per second is shown.

    A sample that cannot be read, a time without samples and a counter's restart leave their columns empty: a gap
    stays a gap.
    """

    def __init__(self, read: Read, counter: bool = False) -> None:
        self.read = read
        self._counter = counter
        self._length = 0.0
        self._count = 0
        self._columns: dict[int, tuple[float, int]] = {}  # number → sum and how many
        self._before: tuple[float, float | None] | None = None
        self._step = 0.0

    def fits(self, window_s: float, count: int, interval_s: float) -> bool:
        """Whether the columns are those of such a window; else `rebuild`."""
        return (self._length, self._count) == _columns(window_s, count, interval_s)

    def rebuild(
        self, samples: Iterable[tuple[float, SampleRecord]], window_s: float, count: int, interval_s: float
    ) -> None:
        """Begin anew with `count` columns at most for `window_s` seconds; none is shorter than `interval_s`."""
        self._length, self._count = _columns(window_s, count, interval_s)
        self._columns.clear()
        self._before, self._step = None, interval_s
        for at, sample in samples:
            self.add(at, sample)

    def forget(self) -> None:
        """Have no columns until `rebuild`."""
        self._length = 0.0

    def add(self, at: float, sample: SampleRecord) -> None:
        """Take the next sample; `at` in unix seconds."""
        if not self._length:
            return
        before, now = self._before, _finite(self.read(sample))
        self._before = (at, now)
        began = at
        if before is not None:
            passed = at - before[0]
            if passed <= 0:
                return
            usual = passed <= BRIDGE * self._step
            if usual:
                began, self._step = before[0], passed
        value = _growth(before, (at, now)) if self._counter else now
        last = math.floor(at / self._length)
        if value is not None:
            first = min(last, math.floor(began / self._length) + 1)
            for column in range(first, last + 1):
                total, number = self._columns.get(column, (0.0, 0))
                self._columns[column] = (total + value, number + 1)
        for old in [column for column in self._columns if column <= last - self._count]:
            del self._columns[old]

    def columns(self, end: float) -> list[float | None]:
        """The means of the columns up to that of `end` (unix seconds), oldest first."""
        if not self._length:
            return []
        last = math.floor(end / self._length)
        found = (self._columns.get(column) for column in range(last - self._count + 1, last + 1))
        return [None if one is None else one[0] / one[1] for one in found]


def _columns(window_s: float, count: int, interval_s: float) -> tuple[float, int]:
    """Length in seconds and number of the columns."""
    length = max(window_s / max(1, count), interval_s)
    return length, max(1, min(count, round(window_s / length)))


def _growth(before: tuple[float, float | None] | None, after: tuple[float, float | None]) -> float | None:
    """Per second; None where either end is unknown and where the counter fell, which is a server that began anew."""
    if before is None or before[1] is None or after[1] is None or after[1] < before[1]:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])


def _finite(value: object) -> float | None:
    """A reading as a finite float; a row's raw JSON may hold anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


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


def gauge(samples: Iterable[SampleRecord], read: Callable[[SampleRecord], float | None]) -> list[Point]:
    """One quantity of each sample over time."""
    return [(_at(sample), _finite(read(sample))) for sample in samples]


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


def _at(sample: SampleRecord) -> float:
    return parse_utc(sample.at).timestamp()
