"""A quantity's history in columns of time, kept up as samples come, so that a draw costs its columns and not its
window. Pure.

Columns stand on multiples of their length, so that a history moves by whole columns and its peaks do not dance.
"""

import math
from collections.abc import Iterable
from itertools import pairwise

from engine.numbers import finite
from engine.samples.window import Read
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
        known = list(samples)
        steps = sorted(later[0] - earlier[0] for earlier, later in pairwise(known))
        self._before, self._step = None, max(interval_s, steps[len(steps) // 2] if steps else 0.0)
        for at, sample in known:
            self.add(at, sample)

    def forget(self) -> None:
        """Have no columns until `rebuild`."""
        self._length = 0.0

    def add(self, at: float, sample: SampleRecord) -> None:
        """Take the next sample; `at` in unix seconds."""
        if not self._length:
            return
        before, now = self._before, finite(self.read(sample))
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
