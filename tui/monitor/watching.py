"""The servers that the Monitor watches: ours that run, those of `--url`, those found on this machine; which one is
shown. Touched by the UI thread alone; what the poller's thread is to read goes to it as a frozen `Wanted`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.limiting.knobs import Knobs, knobs_of
from engine.samples.sample_record import kept_gpus
from store.clock import unix_seconds
from store.records import ACTIVE_SERVER_STATES, EventRecord, SampleRecord, ServerRecord
from tui.monitor.foreign import ForeignServer, place
from tui.monitor.watched import DENSE_S, WINDOWS_S, Watched

if TYPE_CHECKING:
    from engine.discovery import FoundServer

Key = int | str
"""The id of a server of ours, or another's URL."""

MANY = 4  # so many foreign servers are sampled as often as the shown one
SLOW_S = 5.0  # beyond that, those that are not shown
EVERYWHERE = ("0.0.0.0", "::")
FORGET_S = 60.0  # a found server that is gone leaves the list after so long


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the poller reads: `read_to` says up to where the samples of a server of ours are known."""

    shown: Key | None = None
    followed: int | None = None  # a session one of whose launches was chosen while it ran
    window_s: float = WINDOWS_S[1]
    read_to: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OurReading:
    """One server of ours as the store has it. `samples` are those since `Wanted.read_to`; where that has no entry for
    it, `filled` holds all of its window instead, made on the poller's thread: of 900 samples that takes longer than the
    effect of a key may."""

    server: ServerRecord
    kept: bool = False  # whether its keeper lives
    samples: tuple[SampleRecord, ...] = ()
    filled: Watched | None = None
    events: tuple[EventRecord, ...] = ()  # of the shown one


class OurServer(Watched):
    """A server of ours with what the store says of it."""

    def __init__(self, began: float, reading: OurReading) -> None:
        super().__init__(began, server_id=reading.server.id)
        self.take(reading)
        self.filled_s = 0.0
        self._knobs: tuple[object, Knobs] | None = None

    def take(self, reading: OurReading) -> None:
        """What the store says of it now. It is expected to answer from when it was ready."""
        self.reading = reading
        if reading.server.ready_at:
            self.began = unix_seconds(reading.server.ready_at)

    @property
    def knobs(self) -> Knobs:
        """Its settings, looked up anew when its log or a sample tells more than before."""
        told = self.answered.raw if self.answered is not None else {}
        server = self.reading.server
        by = (len(server.facts), server.vllm_version, told.get("gpu_memory_utilization"), len(kept_gpus(self.answered)))
        if self._knobs is None or self._knobs[0] != by:
            self._knobs = by, knobs_of(server, self.answered)
        return self._knobs[1]


class Watching:
    """`shown` None: whichever there is."""

    def __init__(self, urls: Iterable[str], api_key: str | None, now: float) -> None:
        self.shown: Key | None = None
        self.followed: int | None = None
        self.window_s = WINDOWS_S[1]
        self.interval_s = 1.0
        self.ours: dict[int, OurServer] = {}
        self.is_read = False  # whether it is known which of ours run
        self.foreign: dict[str, ForeignServer] = {url: ForeignServer(url, now, api_key=api_key) for url in urls}
        self._given = frozenset(self.foreign)
        self._as_ours: dict[str, int] = {}  # addresses of the person's where one of ours runs now
        self.wanted = self._want()

    # what there is

    def keys(self) -> list[Key]:
        """Those that can be chosen, in their order on the screen."""
        return [*self.ours, *self.sampled()]

    def sampled(self) -> list[str]:
        """The addresses to sample: where one of ours runs, its keeper samples it."""
        return [url for url in self.foreign if url not in self._as_ours]

    @property
    def current(self) -> Key | None:
        """The one that is shown: as chosen, else a URL of the person's, a ready one of ours, any."""
        if self.shown in self.ours:
            return self.shown
        url = next(iter(self.foreign)) if self._given and self.shown is None else self.shown
        if url in self.foreign:
            return self._as_ours.get(str(url), url)
        ready = [key for key, one in self.ours.items() if one.reading.server.state == "ready"]
        return next(iter([*ready, *self.keys()]), None)

    def watched(self, key: Key) -> Watched:
        return self.ours[key] if isinstance(key, int) else self.foreign[key]

    def next(self, step: int) -> Key | None:
        """The next to choose, or with −1 the one before."""
        keys, at = self.keys(), self.current
        return keys[(keys.index(at) + step) % len(keys)] if at is not None else None

    # what is wanted of it

    def choose(self, key: Key) -> None:
        """Show this one; one of ours may be known to the store only."""
        self.shown, self.followed = key, None
        self._adjust()

    def set_window(self, seconds: float) -> None:
        self.window_s = seconds
        self._adjust()

    def set_interval(self, seconds: float) -> None:
        self.interval_s = seconds
        self._adjust()

    def _adjust(self) -> None:
        """The shown one has the whole window; the others a minute at most, and where they are many a slow pace."""
        current = self.current
        many = len(self.foreign) > MANY
        for key in self.keys():
            self.watched(key).reach(self.window_s if key == current else min(self.window_s, DENSE_S))
        for url, server in self.foreign.items():
            server.set_interval(max(self.interval_s, SLOW_S) if many and url != current else self.interval_s)
        self.wanted = self._want()

    def _want(self) -> Wanted:
        """What the poller is to read next."""
        read_to = {
            key: newest.at
            for key, one in self.ours.items()
            if one.filled_s >= one.window.seconds and (newest := one.newest) is not None
        }
        is_address = self.shown is None or self.shown in self.foreign
        return Wanted(self.current if is_address else self.shown, self.followed, self.window_s, read_to)

    # what comes

    def take(
        self, asked: Key | None, readings: Iterable[OurReading], shown: int | None, followed: int | None, now: float
    ) -> bool:
        """What the store has now; `shown` is the one of ours to show where `asked` was, after `followed` led to it.
        True where there is anything new for the one that is shown."""
        before = self.ours
        self.is_read = True
        readings = list(readings)
        if isinstance(self.shown, int) and self.shown != asked and all(one.server.id != self.shown for one in readings):
            return False  # read before that one was chosen
        ours: dict[int, OurServer] = {}
        changed = False
        for reading in readings:
            key = reading.server.id
            if key is None:
                continue
            one = ours[key] = before.get(key) or OurServer(now, reading)
            new = bool(reading.samples or reading.filled) or (
                one.reading.server,
                one.reading.events,
                one.reading.kept,
            ) != (
                reading.server,
                reading.events,
                reading.kept,
            )
            one.take(reading)
            changed = changed or (new and key == shown)
        self.ours = ours
        were, self._as_ours = self._as_ours, {}
        for url in self._given:
            if (running := self._running_at(self.foreign[url])) is not None:
                self._as_ours[url] = running
            elif url in were:  # asked again from now on
                self.foreign[url].began = now
                self.foreign[url].fill(())
        if isinstance(self.shown, int) and self.shown == asked:
            self.shown, self.followed = shown, followed  # None: its session was deleted
        for one in self.ours.values():
            if (filled := one.reading.filled) is not None:
                one.adopt(filled)
                one.filled_s = filled.window.seconds
                one.reading = replace(one.reading, filled=None)
            for sample in one.reading.samples:
                one.add(sample)
        self._adjust()
        return changed or list(before) != list(self.ours)

    def _running_at(self, server: ForeignServer) -> int | None:
        """Which of ours runs at that address; one that listens on all addresses has those of this machine."""
        host, port = place(server.url)
        for id, one in self.ours.items():
            its_host, its_port = _place(one)
            here = its_host == host or (server.local and one.reading.server.host in EVERYWHERE)
            if here and its_port == port and one.reading.server.state in ACTIVE_SERVER_STATES:
                return id
        return None

    def found(self, servers: Iterable["FoundServer"], now: float, clock: float) -> list[ForeignServer]:
        """Servers that listen on this machine: those that are new, to be sampled from now on. `clock` is monotonic."""
        new = []
        ours = {_place(one): id for id, one in self.ours.items()}
        pids = {one.reading.server.pid for one in self.ours.values()}
        for url, known_one in self.foreign.items():
            if url not in self._given and (id := ours.get(place(url))) is not None:  # ours, found before we knew
                known_one.found_at = -math.inf
                if self.current == url:
                    self.shown = id
        known = {place(url): server for url, server in self.foreign.items()}
        for server in servers:
            at = place(server.url)
            if at in ours or server.pid in pids:
                continue
            one = known.get(at)
            if one is None:
                one = self.foreign[server.url] = ForeignServer(server.url, now)
                new.append(one)
            one.flags = server.flags if server.model is not None else None  # its command line could not be read whole
            one.name = server.name if server.model is not None else None
            one.pid, one.found_at = server.pid, clock
        self._adjust()
        return new

    def gone(self, clock: float) -> list[ForeignServer]:
        """Found servers that are there no more, taken out of the list; one that is shown stays."""
        left = [
            server
            for url, server in self.foreign.items()
            if url not in self._given
            and url != self.current
            and server.found_at is not None
            and clock - server.found_at > FORGET_S
        ]
        for server in left:
            del self.foreign[server.url]
        return left


def _place(server: OurServer) -> tuple[str, int | None]:
    return place(server.reading.server.address)
