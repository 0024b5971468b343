"""What a server did over the last so many seconds: the samples of a window and what was added in it.

Figures come from the difference between the first sample of the window and its last, never from the life of the
server. A server that started anew counts from 0 again: what it counts since then came within the window.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any, TypeVar

from engine.numbers import finite
from engine.records import Histogram
from engine.samples.sample_record import histogram_of, requests_finished, total_of
from engine.scrape.histograms import between
from store.clock import unix_seconds
from store.records import SampleRecord

T = TypeVar("T")
Read = Callable[[SampleRecord], float | None]
Place = tuple[float, SampleRecord, int]  # unix seconds, the sample, which life of the server it is of


class Window:
    """The samples of one server, oldest first: those of the last `seconds` before the newest, and one from before
    them, from which the first difference is taken. Grows by `add`, forgets by itself."""

    def __init__(self, seconds: float, samples: Iterable[SampleRecord] = ()) -> None:
        self.seconds = seconds
        self._kept: deque[Place] = deque()
        self._answered: SampleRecord | None = None  # the newest from which a restart can be told
        self._life = 0
        for sample in samples:
            self.add(sample)

    def add(self, sample: SampleRecord) -> None:
        """Take the next sample; one that is not later than the newest is dropped."""
        at = unix_seconds(sample.at)
        kept = self._kept
        if kept and at <= kept[-1][0]:
            return
        if _answers(sample):
            if self._answered is not None and started_anew(self._answered, sample):
                self._life += 1
            self._answered = sample
        kept.append((at, sample, self._life))
        while len(kept) > 2 and kept[1][0] <= at - self.seconds:
            kept.popleft()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def samples(self) -> Sequence[SampleRecord]:
        """All that are kept, oldest first."""
        return tuple(sample for _, sample, _ in self._kept)

    def of_this_life(self, seconds: float) -> list[tuple[float, SampleRecord]]:
        """(unix seconds, sample) of those of the last `seconds` since the server started last, oldest first."""
        begin = self._kept[-1][0] - seconds if self._kept else 0.0
        places = takewhile(lambda place: place[0] >= begin and place[2] == self._life, reversed(self._kept))
        return [(at, sample) for at, sample, _ in places][::-1]

    @property
    def newest(self) -> SampleRecord | None:
        """The last sample, whether the server answered or not."""
        return self._kept[-1][1] if self._kept else None

    def seen(self) -> float:
        """Seconds between the first and the last sample."""
        return self._kept[-1][0] - self._kept[0][0] if self._kept else 0.0

    def points(self, read: Read) -> tuple[tuple[float, float | None], ...]:
        """(unix seconds, reading) of each sample."""
        return tuple((at, read(sample)) for at, sample, _ in self._kept)

    def increase(self, read: Read) -> float | None:
        """How much a counter grew; what a restart undid is counted from 0. None without two readings."""
        grown = _growth(self._kept, read)
        return None if grown is None else finite(grown[0])

    def rate(self, read: Read, over_s: float | None = None) -> float | None:
        """A counter's growth per second over the last `over_s` seconds (all without it), measured from the newest
        reading before them. None without two readings, or where the newest sample has none."""
        if not self._kept or read(self._kept[-1][1]) is None:
            return None
        grown = _growth(self._kept if over_s is None else self._last(over_s, read), read)
        return None if grown is None else finite(grown[0] / grown[1])

    def difference(self, read: Read) -> float | None:
        """How much a counter grew that is not the server's, such as a GPU's energy: no restart of the server begins it
        anew. None without two readings, and where it fell."""
        first, last = _first_known(self._kept, read), _first_known(reversed(self._kept), read)
        if first is None or last is None or first[0] == last[0] or last[1] < first[1]:
            return None
        return finite(last[1] - first[1])

    def total(self, group: str, name: str | None = None) -> float | None:
        """The growth of a total of `raw` (see engine.samples.sample_record.total_of)."""
        return self.increase(lambda sample: total_of(sample, group, name))

    def histogram(self, name: str) -> Histogram | None:
        """What came into a histogram. None where there is none, or where it was read once only."""
        last = _first_known(reversed(self._kept), lambda sample: histogram_of(sample, name))
        if last is None:
            return None
        (at, now, life) = last
        if life != self._kept[0][2]:
            return now  # the server's start lies within the window: all it counts came since
        first = _first_known(self._kept, lambda sample: histogram_of(sample, name))
        if first is None or first[0] == at:
            return None
        # Counts that fell without any other sign of a new start are those of one all the same.
        return between(first[1], now) or now

    def _last(self, over_s: float, read: Read) -> Sequence[Place]:
        """The places of the last `over_s` seconds, and before them down to one that has a reading."""
        begin = self._kept[-1][0] - over_s
        found: list[Place] = []
        for place in reversed(self._kept):
            found.append(place)
            if place[0] <= begin and read(place[1]) is not None:
                break
        return found[::-1]


def _growth(places: Sequence[Place], read: Read) -> tuple[float, float] | None:
    """How much a counter grew over ascending places, and in how many seconds. None without two readings."""
    first, last = _first_known(places, read), _first_known(reversed(places), read)
    if first is None or last is None or first[0] == last[0]:
        return None
    if first[2] == last[2]:  # one life, in which a counter only grows: the two ends tell all
        return _added(first, last), last[0] - first[0]
    known = [(at, value, life) for at, sample, life in places if (value := read(sample)) is not None]
    return sum(_added(before, now) for before, now in pairwise(known)), last[0] - first[0]


def _added(before: tuple[float, float, int], now: tuple[float, float, int]) -> float:
    return now[1] - before[1] if before[2] == now[2] and now[1] >= before[1] else now[1]


def _first_known(places: Iterable[Place], read: Callable[[SampleRecord], T | None]) -> tuple[float, T, int] | None:
    return next(((at, value, life) for at, sample, life in places if (value := read(sample)) is not None), None)


def started_anew(before: SampleRecord, after: SampleRecord) -> bool:
    """Whether the server of two samples is another process in the second: it says so, or a counter fell.

    vLLM's Rust front end and several API servers do not say when they started, so every total is looked at.
    """
    starts = before.raw.get("process_start"), after.raw.get("process_start")
    if None not in starts and starts[0] != starts[1]:
        return True
    old, new = _totals(before), _totals(after)
    return any(new.get(name, value) < value for name, value in old.items())


def _totals(sample: SampleRecord) -> dict[str, float]:
    """All that only grows within one life of a server."""
    raw = sample.raw
    found: dict[str, Any] = {
        "preemptions": sample.preemptions,
        "prompt_tokens": sample.prompt_tokens,
        "generation_tokens": sample.generation_tokens,
        "prefix_queries": sample.prefix_queries,
        "prefix_hits": sample.prefix_hits,
        "requests_finished": requests_finished(sample),
    }
    counters, histograms = raw.get("counters"), raw.get("histograms")
    if isinstance(counters, Mapping):
        found |= {f"counters {name}": value for name, value in counters.items()}
    if isinstance(histograms, Mapping):
        found |= {f"histogram {name}": one.get("count") for name, one in histograms.items() if isinstance(one, Mapping)}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def _answers(sample: SampleRecord) -> bool:
    """Whether the sample holds any sign by which one life of a server is told from another."""
    return "process_start" in sample.raw or bool(_totals(sample))
