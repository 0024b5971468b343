"""Monitor: one server's scheduler, latencies and GPUs now, with a short history of each; all of them as a list."""

import asyncio
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType

from engine.gpu_owners import NOBODY, Owners
from tui.monitor.foreign import ForeignServer
from tui.monitor.monitor_keys import KEYS
from tui.monitor.monitor_legend import LEGEND
from tui.monitor.monitor_reading import MonitorSnapshot, read_servers
from tui.monitor.subject import Look, Subject, subject_of
from tui.monitor.surroundings import Surroundings
from tui.monitor.watched import WINDOWS_S
from tui.monitor.watching import Key, Watching
from tui.palette import Command
from tui.panels.overview import Overview
from tui.screens.base import LlmtuneScreen
from tui.widgets.monitor_panel import MonitorPanel, is_tall

if TYPE_CHECKING:
    from store.reader import Reader

INTERVALS_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
FIND_S = 5.0
KNOWN_S = 0.5  # so long an address waits to be known for ours, should the store not be read sooner
LATE = 1.2  # intervals without a sample, after which the screen is drawn all the same: clocks run


class MonitorScreen(LlmtuneScreen):
    """The servers that we started, from the store; those of `--url` and those found here, each sampled by a task."""

    BINDINGS: ClassVar[list[BindingType]] = KEYS

    LEGEND = LEGEND

    def __init__(self) -> None:
        super().__init__()
        # Here, not at the first question for it: the poller's thread and this one would each make one.
        self.watching = Watching(self.app.urls, os.environ.get("VLLM_API_KEY"), self._now().timestamp())
        self._interval = INTERVALS_S.index(1.0)
        self._window = 1
        self._frozen = False
        self._listing = False
        self._gpu = 0
        self._choices = (0, 0, False)  # servers, GPUs, whether the shown one is ours
        self._owners: Owners = NOBODY
        self._drawn_at = 0.0
        self._around = Surroundings()
        self._unrecorded: str | None = None
        self._sampling: set[str] = set()
        self._fed = asyncio.Event()

    def compose_body(self) -> ComposeResult:
        yield MonitorPanel()

    def on_mount(self) -> None:
        self.run_worker(self._find(), group="finding", description="looks for servers on this machine")
        self.set_timer(KNOWN_S, self._sample_all)
        self.set_interval(0.25, self._tick)

    def on_unmount(self) -> None:
        self._around.close()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        self.later(self.redraw)

    def _now(self) -> datetime:
        return self.app.now().astimezone(UTC)

    # feeding

    def refresh_from_store(self, reader: "Reader") -> MonitorSnapshot:
        return read_servers(reader, self.watching.wanted, self._now(), self.app.data_dir)

    def show(self, snapshot: MonitorSnapshot) -> None:
        current = self.watching.current
        new = self.watching.take(
            snapshot.asked, snapshot.readings, snapshot.shown, snapshot.followed, self._now().timestamp()
        )
        self._sample_all()
        if self.watching.current != current or current is None or (new and self._is_due()):
            self._draw_unless_frozen()
        self._fed.set()

    def _sample_all(self) -> None:
        """Have just those sampled that are to be: an address of the person's is left to the keeper while one of ours
        runs there."""
        wanted = self.watching.sampled()
        for url in self._sampling - set(wanted):
            self.workers.cancel_group(self, url)
        for url in wanted:
            if url not in self._sampling:
                self._sample(self.watching.foreign[url])
        self._sampling = set(wanted)

    def _sample(self, server: ForeignServer) -> None:
        """Begin to sample a server that is not ours."""
        self.run_worker(
            server.run(self._around.gpu, self._came, self.app.records),
            group=server.url,
            description=f"samples {server.shown}",
        )

    def _came(self, server: ForeignServer) -> None:
        """A sample of a foreign server came."""
        trouble = self.app.records.trouble if self.app.records is not None else None
        if trouble != self._unrecorded:
            self._unrecorded = trouble
            if trouble is not None:
                self.say(f"samples are not recorded now: {trouble}", error=True)
        if self.watching.foreign.get(str(self.watching.current)) is server:
            self._draw_unless_frozen()

    async def _find(self) -> None:
        """Look again and again which servers listen on this machine, while this screen is looked at. Ours are drawn
        first: looking takes a while, and what it finds is then known for ours or for another."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._fed.wait(), KNOWN_S)
        while True:
            if self._is_looked_at():
                await self._find_once()
            await asyncio.sleep(FIND_S)

    async def _find_once(self) -> None:
        current = self.watching.current
        newest = self.watching.watched(current).newest if current is not None else None
        servers = [one.reading.server for one in self.watching.ours.values()]
        found, self._owners = await asyncio.to_thread(self._around.look, newest, servers)
        clock = time.monotonic()
        self.watching.found(found, self._now().timestamp(), clock)
        self.watching.gone(clock)
        self._sample_all()

    # drawing

    def _is_looked_at(self) -> bool:
        return self.is_up and self in self.app.screen_stack

    def _is_due(self) -> bool:
        """Whether the chosen interval has passed; a new sample of ours is a little early at times."""
        return time.monotonic() - self._drawn_at > 0.7 * INTERVALS_S[self._interval]

    def _tick(self) -> None:
        """Draw where no sample made it so for longer than an interval, and at the moment when silence begins."""
        watching = self.watching
        current = watching.current
        if current is None:
            due = 1.0
        else:
            watched = watching.watched(current)
            silent = watched.silent_from() - self._now().timestamp()
            due = LATE * max(1.0, INTERVALS_S[self._interval])
            if -0.3 < silent <= 0.0:
                due = 0.3
        if time.monotonic() - self._drawn_at >= due:
            self._draw_unless_frozen()

    def _draw_unless_frozen(self) -> None:
        if not self._frozen and self._is_looked_at():
            self.redraw()

    def redraw(self) -> None:
        """Draw what is known now, also while the screen is held."""
        self._drawn_at = time.monotonic()
        watching, panel = self.watching, self.query_one(MonitorPanel)
        current = watching.current
        listing = self._listing and current is not None
        keys = watching.keys()
        listed = listing or (len(keys) > 1 and is_tall(panel))
        others = [Overview(self._subject(key), key == current) for key in keys] if listed else []
        subject = self._subject(current)
        panel.draw(subject, others, listing)
        choices = (len(keys), subject.gpu_count, isinstance(current, int))
        if choices != self._choices:
            self._choices = choices
            self.refresh_bindings()

    def _subject(self, key: Key | None) -> Subject:
        watching = self.watching
        keys, now = watching.keys(), self._now()
        at = keys.index(key) if key is not None else 0
        window, interval = watching.window_s, watching.interval_s
        look = Look(now, window, interval, at, len(keys), self._frozen, self._gpu, self._owners)
        return subject_of(watching, key, look)

    # choosing

    def watch_server(self, shown: Key) -> None:
        """Show this server: the next one, or one of ours as another screen asks."""
        self.watching.choose(shown)
        self._frozen, self._gpu = False, 0
        self.redraw()
        self.app.ask()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("server", "overview"):
            return self._listing or len(self.watching.keys()) > 1
        if action == "history":
            return isinstance(self.watching.current, int)
        return action != "gpu" or self._choices[1] > 1

    def action_server(self, step: int) -> None:
        """Show the next server, or the one before."""
        following = self.watching.next(step)
        if following is not None:
            self.watch_server(following)

    def action_gpu(self, step: int) -> None:
        """The next GPU in detail, or the one before."""
        self._gpu += step
        self.redraw()

    def action_overview(self) -> None:
        """All servers instead of the blocks of one, or back."""
        self._listing = not self._listing
        self.redraw()

    def action_back(self) -> None:
        """From the list to the chosen server."""
        if self._listing:
            self.action_overview()
        else:
            super().action_back()

    # other keys

    def action_window(self) -> None:
        """The next length of the histories and windowed figures."""
        self._window = (self._window + 1) % len(WINDOWS_S)
        self.watching.set_window(WINDOWS_S[self._window])
        self.app.ask()
        self.redraw()

    def action_freeze(self) -> None:
        """Hold the screen, or let it go on."""
        self._frozen = not self._frozen
        self.redraw()

    def action_interval(self, step: int) -> None:
        """Look less or more often: others are sampled so, ours drawn so (their keepers sample them once a second)."""
        self._interval = min(len(INTERVALS_S) - 1, max(0, self._interval + step))
        self.watching.set_interval(INTERVALS_S[self._interval])
        self.redraw()

    def action_events(self) -> None:
        """All that happened to the server that is shown."""
        from tui.screens.events import EventsScreen

        current = self.watching.current
        if current is None:
            self.say("no server is shown")
            return
        watched = self.watching.watched(current)
        title = self._subject(current).words[0]
        self.app.push_screen(EventsScreen(watched.server_id, title, lambda: watched.events))

    def action_history(self) -> None:
        """The whole life of a server of ours."""
        from tui.screens.run_charts import open_history

        current = self.watching.current
        if isinstance(current, int):
            open_history(self.app, current)

    def action_copy(self) -> None:
        """The address of the server that is shown, or its figures."""
        from tui.screens.copying import copy_subject

        current = self.watching.current
        if current is None:
            self.say("no server is shown")
            return
        copy_subject(self.app, lambda: self._subject(current))

    def commands(self) -> tuple[Command, ...]:
        return (
            Command("Next server", "Ours that run, of --url, found here", lambda: self.action_server(1)),
            Command("All servers", "A line each", self.action_overview),
            Command("Events", "All that happened to the server", self.action_events),
            Command("Longer or shorter window", "30 s, 1, 5 or 15 minutes", self.action_window),
            Command("Go on" if self._frozen else "Freeze", "Hold the screen still", self.action_freeze),
            Command("Copy", "The address, or what is shown as JSON", self.action_copy),
        )
