"""What a server did over the last so many seconds: the samples of a window and what was added in it.

Figures come from the difference between the first sample of the window and its last, never from the life of the
server. A counter that fell is a server that started anew: the window then begins at its new start.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from engine.histograms import between
from engine.records import Histogram
from engine.sample_record import histogram_of, total_of
from store.clock import parse_utc
from store.records import SampleRecord

Read = Callable[[SampleRecord], float | None]


class Window:
    """The samples of one server, oldest first: those of the last `seconds` before the newest, and one from before
    them, from which the first difference is taken. Grows by `add`, forgets by itself."""

    def __init__(self, seconds: float, samples: Iterable[SampleRecord] = ()) -> None:
        self.seconds = seconds
        self._kept: deque[tuple[float, SampleRecord]] = deque()
        self._answered: SampleRecord | None = None
        self._restarted_at: float | None = None
        for sample in samples:
            self.add(sample)

    def add(self, sample: SampleRecord) -> None:
        """Take the next sample; one that is not later than the newest is dropped."""
        at = parse_utc(sample.at).timestamp()
        kept = self._kept
        if kept and at <= kept[-1][0]:
            return
        kept.append((at, sample))
        while len(kept) > 2 and kept[1][0] <= at - self.seconds:
            kept.popleft()
        if self._restarted_at is not None and self._restarted_at <= kept[0][0]:
            self._restarted_at = None
        if sample.generation_tokens is not None:
            if self._answered is not None and started_anew(self._answered, sample):
                self._restarted_at = at
            self._answered = sample

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def samples(self) -> Sequence[SampleRecord]:
        """All that are kept, oldest first."""
        return tuple(sample for _, sample in self._kept)

    @property
    def newest(self) -> SampleRecord | None:
        return self._kept[-1][1] if self._kept else None

    def seen(self) -> float:
        """Seconds between the first and the last sample."""
        return self._kept[-1][0] - self._kept[0][0] if self._kept else 0.0

    def points(self, read: Read) -> tuple[tuple[float, float | None], ...]:
        """(unix seconds, reading) of each sample."""
        return tuple((at, read(sample)) for at, sample in self._kept)

    def increase(self, read: Read) -> float | None:
        """How much a counter grew; what a restart undid is counted from 0. None without two readings."""
        known = [value for _, sample in self._kept if (value := read(sample)) is not None]
        if len(known) < 2:
            return None
        return sum(now - before if now >= before else now for before, now in pairwise(known))

    def rate(self, read: Read, over_s: float | None = None) -> float | None:
        """A counter's growth per second over the last `over_s` seconds (all without it). None without two readings."""
        end = self._kept[-1][0] if self._kept else 0.0
        known = [
            (at, value)
            for at, sample in self._kept
            if (over_s is None or at >= end - over_s) and (value := read(sample)) is not None
        ]
        if len(known) < 2 or known[-1][0] != end:
            return None
        grown = sum(now - before if now >= before else now for (_, before), (_, now) in pairwise(known))
        return grown / (known[-1][0] - known[0][0])

    def total(self, group: str, name: str | None = None) -> float | None:
        """The growth of a total of `raw` (see engine.sample_record.total_of)."""
        return self.increase(lambda sample: total_of(sample, group, name))

    def histogram(self, name: str) -> Histogram | None:
        """What came into a histogram. None where there is none, or where it was read once only."""
        last = next((found for _, sample in reversed(self._kept) if (found := histogram_of(sample, name))), None)
        if last is None or self._restarted_at is not None:
            return last  # the server's start lies within the window: all it counts came since
        first = next((found for _, sample in self._kept if (found := histogram_of(sample, name))), None)
        return between(first, last) if first != last else None


def started_anew(before: SampleRecord, after: SampleRecord) -> bool:
    """Whether the server of two samples is another process in the second: it says so, or a counter fell."""
    starts = before.raw.get("process_start"), after.raw.get("process_start")
    if None not in starts and starts[0] != starts[1]:
        return True
    counters = (
        (before.preemptions, after.preemptions),
        (before.prompt_tokens, after.prompt_tokens),
        (before.generation_tokens, after.generation_tokens),
    )
    return any(old is not None and new is not None and new < old for old, new in counters)
