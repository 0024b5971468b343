"""Monitor: one server's memory, scheduler and GPU now, with a short history of each."""

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from engine.keeper.client import is_running
from store.clock import format_utc, parse_utc
from store.records import EventRecord, ServerRecord
from tui.foreign import ForeignServer
from tui.history import NOTHING, Series, read_series
from tui.palette import Command
from tui.screens.base import LlmtuneScreen, Number
from tui.subject import Look, Subject
from tui.widgets.monitor_panel import MonitorPanel

if TYPE_CHECKING:
    from store.reader import Reader

WINDOWS_S = (60.0, 300.0, 900.0)


@dataclass(frozen=True, slots=True)
class MonitorSnapshot:
    """Our servers that run, the one that is shown (None: a foreign one, or none), its samples and events."""

    servers: tuple[ServerRecord, ...] = ()
    server: ServerRecord | None = None
    kept: bool = False  # whether that one's keeper lives
    series: Series = NOTHING
    events: tuple[EventRecord, ...] = ()


class MonitorScreen(LlmtuneScreen):
    """The servers that we started, from the store; those of `--url`, sampled here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "next_server", "server", tooltip="show the next server"),
        Binding("w", "window", "window", tooltip="how long the histories and windowed figures reach back"),
        Binding("space", "freeze", "freeze", tooltip="hold the screen still; sampling goes on"),
        Binding(
            "plus,equals_sign", "interval(1)", "slower", key_display="+", tooltip="sample a foreign server less often"
        ),
        Binding("minus", "interval(-1)", "faster", key_display="-", tooltip="sample a foreign server more often"),
        Binding("y", "copy", "copy", tooltip="copy the server's address"),
    ]

    LEGEND = (
        Number("KV cache", "share of the KV cache's blocks in use, of the fullest engine; its size in tokens"),
        Number("running", "requests being computed now; the most that max-num-seqs lets in"),
        Number("waiting", "requests in the queue: for room (capacity), or put off by the scheduler (deferred)"),
        Number("preempted", "requests thrown out of the KV cache to be computed anew, and how many a minute"),
        Number("prefix hits", "share of prompt tokens found in the prefix cache, over the window"),
        Number("output", "tokens generated a second, mean of 5 s"),
        Number("prompt", "prompt tokens processed a second, cached ones too, mean of 5 s"),
        Number("requests", "requests finished a second; in all since the server began"),
        Number("GPU n", "memory in use by all processes, in GiB (2^30 bytes); budget is gpu-memory-utilization"),
        Number(
            "its model",
            "share of the last sampling period in which a kernel ran: 100 % is not full speed; power, of its limit",
        ),
        Number("clock", "of the streaming multiprocessors, and what holds it down"),
        Number("–", "cannot be read; never the same as 0"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._snapshot = MonitorSnapshot()
        self._shown: int | str | None = None  # the id of one of ours, or a URL; None: the first there is
        self._followed: int | None = None  # a session one of whose launches was chosen while it ran
        self._foreign: ForeignServer | None = None
        self._window = 1
        self._frozen = False

    def compose_body(self) -> ComposeResult:
        yield MonitorPanel()

    def on_mount(self) -> None:
        if self.app.urls:
            self._choose(self.app.urls[0])
        self.set_interval(1.0, self._tick)

    # feeding

    def refresh_from_store(self, reader: "Reader") -> MonitorSnapshot:
        servers = tuple(reader.servers(active=True))
        shown = self._shown
        if isinstance(shown, str):
            return MonitorSnapshot(servers)
        server = self._pick(servers, shown, reader)
        if server is None or server.id is None:
            return MonitorSnapshot(servers)
        end = parse_utc(server.stopped_at) if server.stopped_at else self.app.now().astimezone(UTC)
        since = format_utc(end - timedelta(seconds=WINDOWS_S[self._window] + 10))
        return MonitorSnapshot(
            servers,
            server,
            self._is_server_kept(server),
            read_series(reader.samples(server_id=server.id, since=since)),
            tuple(reader.events(server_id=server.id, limit=20)),
        )

    def _pick(self, servers: tuple[ServerRecord, ...], shown: int | None, reader: "Reader") -> ServerRecord | None:
        """The chosen server, also after it stopped; but of a sweep that is followed, the launch that runs now."""
        if shown is None:
            ready = [server for server in servers if server.state == "ready"]
            return next(iter([*ready, *servers]), None)
        server = next((server for server in (*servers, *reader.servers()) if server.id == shown), None)
        if server is None:  # its session was deleted
            return next(iter(servers), None)
        if server in servers:
            self._followed = server.session_id
        elif server.session_id is not None and server.session_id == self._followed:
            return next((other for other in servers if other.session_id == server.session_id), server)
        return server

    def _is_server_kept(self, server: ServerRecord) -> bool:
        if server.session_id is not None:
            return self.is_kept(server.session_id)
        return server.id is not None and is_running(self.app.data_dir, "server", server.id)

    def show(self, snapshot: MonitorSnapshot) -> None:
        self._snapshot = snapshot
        self._tick()

    def _tick(self) -> None:
        """A second passed, or there is a new sample."""
        if not self._frozen:
            self.later(self.redraw)

    def redraw(self) -> None:
        """Draw what was read last, also while the screen is held."""
        self.query_one(MonitorPanel).draw(self._subject())

    def _subject(self) -> Subject:
        seen = self._snapshot
        places = len(seen.servers) + len(self.app.urls)
        look = Look(self.app.now().astimezone(UTC), WINDOWS_S[self._window], places, self._frozen)
        if self._foreign is not None:
            return Subject.foreign(self._foreign, look)
        return Subject.ours(seen.server, seen.series, seen.events, seen.kept, look)

    # choosing

    def _choose(self, shown: int | str) -> None:
        if shown == self._shown:
            return
        self._shown, self._followed = shown, None
        self.workers.cancel_group(self, "foreign")
        self._foreign = None
        if isinstance(shown, str):
            self._foreign = ForeignServer(shown)
            self.run_worker(self._foreign.run(self._tick), group="foreign", description=f"samples {shown}")
        self.refresh_bindings()
        self.app.ask()

    def watch_server(self, server_id: int) -> None:
        """Show one of our servers, as another screen asks."""
        self._choose(server_id)

    def action_next_server(self) -> None:
        """Show the next of ours that run and of the URLs."""
        places: list[int | str] = [server.id for server in self._snapshot.servers if server.id is not None]
        places += self.app.urls
        if not places:
            self.say("no server runs; 1 Servers starts one")
            return
        present = self._snapshot.server
        at = self._shown if self._shown is not None else (present.id if present is not None else None)
        self._choose(places[(places.index(at) + 1) % len(places)] if at in places else places[0])
        self._frozen = False
        self.redraw()

    # other keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "interval" or self._foreign is not None  # ours are sampled by their keepers, once a second

    def action_window(self) -> None:
        """The next length of the histories."""
        self._window = (self._window + 1) % len(WINDOWS_S)
        self.app.ask()
        self.redraw()

    def action_freeze(self) -> None:
        """Hold the screen, or let it go on."""
        self._frozen = not self._frozen
        self.redraw()

    def action_interval(self, step: int) -> None:
        """Sample a foreign server less or more often."""
        if self._foreign is not None:
            self._foreign.change_interval(step)
            self.redraw()

    def action_copy(self) -> None:
        """The address of the server that is shown."""
        from tui.widgets.copy import CopyPanel

        server = self._snapshot.server
        if self._foreign is not None:
            self.app.push_screen(CopyPanel(self._foreign.shown, "Address"))
        elif server is not None:
            self.app.push_screen(CopyPanel(f"http://{server.host}:{server.port}", "Address"))
        else:
            self.say("no server is shown")

    def commands(self) -> tuple[Command, ...]:
        return (
            Command("Next server", "Of those that run, and of --url", self.action_next_server),
            Command("Longer or shorter window", "1, 5 or 15 minutes", self.action_window),
            Command("Go on" if self._frozen else "Freeze", "Hold the screen still", self.action_freeze),
            Command("Copy the address", "Of the server that is shown", self.action_copy),
        )
