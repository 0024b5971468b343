"""One server that the Monitor watches, ours or another's: its window, its histories, its life, what happened to it."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

from engine.limiting.bottleneck import Limit, what_limits
from engine.limiting.knobs import Knobs
from engine.samples.sample_record import requests_finished
from engine.samples.window import Window
from store.clock import unix_seconds
from store.records import EventRecord, SampleRecord
from tui.monitor.happenings import Happenings
from tui.monitor.history import History
from tui.monitor.liveness import Liveness, Pulse

WINDOWS_S = (30.0, 60.0, 300.0, 900.0)
DENSE_S, SPARSE_S = 60.0, 5.0  # what lies further back than the first is kept once in the second
RATE_S = 5.0  # a rate "now" is the mean over this long: shorter ones flicker with the batches
EVENTS = 200


class Past:
    """The samples of the longest window: the last minute whole, before it one in five seconds. A window that is made
    longer begins with these, so that it shows at once what there is, at a third of the memory."""

    def __init__(self) -> None:
        self._near: deque[tuple[float, SampleRecord]] = deque()
        self._far: deque[tuple[float, SampleRecord]] = deque()

    def add(self, at: float, sample: SampleRecord) -> None:
        """Take the next sample; `at` in unix seconds."""
        self._near.append((at, sample))
        while self._near[0][0] < at - DENSE_S:
            old = self._near.popleft()
            if not self._far or old[0] - self._far[-1][0] >= SPARSE_S:
                self._far.append(old)
        while self._far and self._far[0][0] < at - WINDOWS_S[-1] - SPARSE_S:
            self._far.popleft()

    def samples(self) -> Iterable[SampleRecord]:
        """Oldest first."""
        return (sample for _, sample in chain(self._far, self._near))


class Watched:
    """Samples come by `add`, in their order. `began` (unix seconds) is when it was asked first."""

    def __init__(self, began: float, server_id: int | None = None) -> None:
        self.began = began
        self.interval_s = 1.0  # between two samples
        self.server_id = server_id
        self.window = Window(DENSE_S)
        self.histories = {
            "kv": History(lambda sample: sample.kv_perc),
            "running": History(lambda sample: sample.running),
            "waiting": History(lambda sample: sample.waiting),
            "output": History(lambda sample: sample.generation_tokens, counter=True),
            "prompt": History(lambda sample: sample.prompt_tokens, counter=True),
            "requests": History(requests_finished, counter=True),
        }
        self._events: dict[tuple[str, str], EventRecord] = {}  # by time and text, oldest first
        self._limit: Limit | None = None
        self._judged: SampleRecord | None = None
        self._begin()

    def _begin(self) -> None:
        self.newest: SampleRecord | None = None
        self.newest_at: float | None = None  # unix seconds
        self.answered: SampleRecord | None = None  # the newest sample that the server gave
        self._past = Past()
        self._pulse = Pulse()
        self._happenings = Happenings(self.server_id)
        self._first_at: float | None = getattr(self, "_first_at", None)  # of all samples that told what happened

    def add(self, sample: SampleRecord) -> None:
        """Take the next sample; one that is not later than the newest is dropped."""
        at = unix_seconds(sample.at)
        if self.newest_at is not None and at <= self.newest_at:
            return
        self.newest, self.newest_at = sample, at
        self._first_at = at if self._first_at is None else min(at, self._first_at)
        self._past.add(at, sample)
        self.window.add(sample)
        self._pulse.add(at, sample)
        if self._pulse.answered_at == at:
            self.answered = sample
        for history in self.histories.values():
            history.add(at, sample)
        for event in self._happenings.add(sample, self._pulse.still_s):
            self._events[event.at, event.text] = event
            if len(self._events) > EVENTS:
                del self._events[next(iter(self._events))]

    def fill(self, samples: Iterable[SampleRecord]) -> None:
        """Begin anew with these, oldest first; what happened stays known."""
        self.window = Window(self.window.seconds)
        for history in self.histories.values():
            history.forget()
        self._begin()
        for sample in samples:
            self.add(sample)

    def adopt(self, other: "Watched") -> None:
        """Go on from what another, which nobody uses any more, was filled with; what happened stays known."""
        self.window, self.histories = other.window, other.histories
        self._learn(other)
        self.newest, self.newest_at, self.answered = other.newest, other.newest_at, other.answered
        self._past, self._pulse, self._happenings = other._past, other._pulse, other._happenings

    def _learn(self, other: "Watched") -> None:
        """Take over what happened: of a time that both saw as the one tells it that saw more of what went before, or
        what began before its first sample would stand there twice, once for too short."""
        first = other._first_at
        if self._first_at is None or (first is not None and first < self._first_at):
            kept = {key: event for key, event in self._events.items() if first is None or _at(event) < first}
            self._events, self._first_at = kept | other._events, first
        else:
            known_to = self.newest_at or self._first_at
            self._events |= {key: event for key, event in other._events.items() if _at(event) > known_to}

    def reach(self, seconds: float) -> None:
        """Have the window hold the last `seconds`."""
        if seconds != self.window.seconds:
            self.window = Window(seconds, self._past.samples())
            for history in self.histories.values():
                history.forget()

    def history(self, name: str, end: float, count: int) -> Sequence[float | None]:
        """At most `count` columns of a quantity over the window, up to `end` (unix seconds)."""
        history = self.histories[name]
        if not history.fits(self.window.seconds, count, self.interval_s):
            samples = ((unix_seconds(sample.at), sample) for sample in self.window.samples)
            history.rebuild(samples, self.window.seconds, count, self.interval_s)
        return history.columns(end)

    def rate(self, name: str) -> float | None:
        """A counter's growth per second now, as a mean of some seconds."""
        return self.window.rate(self.histories[name].read, max(RATE_S, 2 * self.interval_s))

    def limit(self, knobs: Knobs) -> Limit | None:
        """What limits it; judged anew when a sample came."""
        if self._judged is not self.newest:
            self._judged = self.newest
            self._limit = what_limits(self.window, knobs, self._limit)
        return self._limit

    def liveness(self, now: float) -> Liveness:
        """Whether it answers and gets on, at `now` (unix seconds)."""
        return self._pulse.liveness(now, self.began, self.interval_s)

    def silent_from(self) -> float:
        """When it counts as silent if nothing more is heard of it, in unix seconds."""
        return self._pulse.silent_from(self.began, self.interval_s)

    @property
    def error(self) -> str | None:
        """What was wrong with the newest look, None where it was answered."""
        return self._pulse.error

    @property
    def events(self) -> tuple[EventRecord, ...]:
        """What its samples tell of what happened, oldest first."""
        return tuple(self._events.values())


def _at(event: EventRecord) -> float:
    return unix_seconds(event.at)
