"""A window cut into slots of time, for histories: what a slot held is worked out once, when the slot is over.

A history of fifteen minutes at one sample a second would else be read whole for each chart at each tick.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from statistics import median
from typing import TypeVar

from engine.samples.sample_record import histogram_of
from engine.samples.window import Window
from engine.scrape.histograms import between, percentile
from store.clock import unix_seconds
from store.records import SampleRecord

SHORTEST_S = 2.0  # at one sample a second a shorter slot is empty now and then although nothing is amiss


def slots_across(width: int, window_s: float) -> int:
    """How many slots fill that many columns, each slot the same number of them."""
    return max(1, width // max(1, math.ceil(width * SHORTEST_S / window_s)))


T = TypeVar("T")
Timed = tuple[float, SampleRecord]
Make = Callable[[Timed | None, Sequence[Timed]], float | None]
"""From the last sample before a slot and those in it (at least one) to the slot's value."""


class Slots:
    """The last `count` slots of a window, oldest first. Slots stand on multiples of their length, so that a history
    moves by whole columns and its peaks do not dance."""

    def __init__(self) -> None:
        self._window: Window | None = None
        self._length = 0.0
        self._begin()

    def _begin(self) -> None:
        self._first, self._last = 0, -1
        self._until = -math.inf
        self._held: dict[int, list[Timed]] = {}
        self._made: dict[tuple[Hashable, int], float | None] = {}

    def follow(self, window: Window, count: int) -> None:
        """Take what is new in the window. Another window, or another number of slots, begins anew."""
        length = self._slot_length(window, count)
        if window is not self._window or length != self._length:
            self._window, self._length = window, length
            self._begin()
        fresh: list[Timed] = []
        for sample in reversed(window.samples):
            at = unix_seconds(sample.at)
            if at <= self._until:
                break
            fresh.append((at, sample))
        if not fresh:
            return
        for at, sample in reversed(fresh):
            self._held.setdefault(math.floor(at / length), []).append((at, sample))
        self._until = fresh[0][0]
        self._last = math.floor(self._until / length)
        self._first = self._last - max(1, min(count, round(window.seconds / length))) + 1
        for slot in [slot for slot in self._held if slot < self._first - 1]:
            del self._held[slot]
        for key in [key for key in self._made if key[1] < self._first]:
            del self._made[key]

    def _slot_length(self, window: Window, count: int) -> float:
        """Never shorter than two sampling intervals; kept as long as it is that, for a jitter must not redraw all."""
        wanted = max(window.seconds / max(1, count), SHORTEST_S)
        newest = [unix_seconds(sample.at) for sample in window.samples[-9:]]
        steps = [later - earlier for earlier, later in pairwise(newest)]
        return max(wanted, 2.0 * float(round(median(steps)))) if steps else wanted

    def values(self, key: Hashable, make: Make) -> list[float | None]:
        """The history of one quantity. `key` names it; None where a slot has no sample or no value."""
        out: list[float | None] = []
        before: Timed | None = None
        for slot in range(self._first - 1, self._last + 1):
            held = self._held.get(slot)
            if slot >= self._first:
                out.append(self._value(key, make, slot, before, held))
            before = held[-1] if held else before
        return out

    def _value(
        self, key: Hashable, make: Make, slot: int, before: Timed | None, held: Sequence[Timed] | None
    ) -> float | None:
        if (key, slot) in self._made:
            return self._made[key, slot]
        value = make(before, held) if held else None
        if slot < self._last:  # it is over
            self._made[key, slot] = value
        return value


def gauge(read: Callable[[SampleRecord], float | None]) -> Make:
    """The mean of a gauge over the slot."""

    def make(before: Timed | None, held: Sequence[Timed]) -> float | None:
        known = [value for _, sample in held if (value := read(sample)) is not None and math.isfinite(value)]
        return sum(known) / len(known) if known else None

    return make


def growth_rate(read: Callable[[SampleRecord], float | None]) -> Make:
    """A counter's growth per second over the slot, None where it fell (the server started anew)."""

    def make(before: Timed | None, held: Sequence[Timed]) -> float | None:
        ends = _ends(before, held, read)
        if ends is None:
            return None
        (since, earlier), (until, later) = ends
        return (later - earlier) / (until - since) if later >= earlier else None

    return make


def percentile_of(name: str, perc: float) -> Make:
    """A percentile of what came into a histogram in the slot. Below the first bound it is that bound, negative: a
    history has it at its bottom, and `latency_text` says `<10 ms`. Above the last finite bound it is that one."""

    def make(before: Timed | None, held: Sequence[Timed]) -> float | None:
        ends = _ends(before, held, lambda sample: histogram_of(sample, name))
        found = percentile(between(ends[0][1], ends[1][1]), perc) if ends is not None else None
        if found is None:
            return None
        if found.resolved:
            return found.value
        return -found.upper if found.upper is not None else found.lower

    return make


def _ends(
    before: Timed | None, held: Sequence[Timed], read: Callable[[SampleRecord], T | None]
) -> tuple[tuple[float, T], tuple[float, T]] | None:
    """The first and the last reading with their times, from the sample before a slot on: a single look that failed
    leaves no hole. None without two."""
    timed = [*([before] if before is not None else []), *held]
    first = next(((at, value) for at, sample in timed if (value := read(sample)) is not None), None)
    last = next(((at, value) for at, sample in reversed(held) if (value := read(sample)) is not None), None)
    return (first, last) if first is not None and last is not None and last[0] > first[0] else None
