"""The full-screen program. It owns nothing that matters: servers and sweeps belong to their keepers and outlive it."""

import asyncio
import gc
import signal
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import on, work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from store.location import database_file
from tui.collector import Collector
from tui.messages import GoingOn, StoreFailed, StoreRead
from tui.palette import app_commands
from tui.parting import parting_words
from tui.poller import Poller, StoreView

if TYPE_CHECKING:
    from engine.samples.foreign_record import ForeignRecords
    from tui.screens.base import LlmtuneScreen
    from tui.tune.tune_source import ViewSource

MODE_LABELS = {"servers": "Servers", "monitor": "Monitor", "tune": "Tune", "sessions": "Sessions", "lora": "LoRA"}
"""The screens of the number keys, in their order."""

LOAD_AFTER_S = 0.5


def _servers() -> "LlmtuneScreen":
    from tui.screens.servers import ServersScreen

    return ServersScreen()


def _monitor() -> "LlmtuneScreen":
    from tui.screens.monitor import MonitorScreen

    return MonitorScreen()


def _tune() -> "LlmtuneScreen":
    from tui.screens.tune import TuneScreen

    return TuneScreen()


def _sessions() -> "LlmtuneScreen":
    from tui.screens.sessions import SessionsScreen

    return SessionsScreen()


def _lora() -> "LlmtuneScreen":
    from tui.screens.lora import LoraScreen

    return LoraScreen()


class LlmtuneApp(App[object]):
    """The screens on one data directory. `vllm` is the person's `--vllm`, `urls` are foreign servers to watch,
    `records` keeps the samples of these (None: they stay in memory). With `monitor` the Monitor is shown first."""

    TITLE = "llmtune"
    CSS_PATH = "app.tcss"
    MODES: ClassVar[dict[str, str | Callable[[], Screen]]] = {  # type: ignore[type-arg]
        "servers": _servers,
        "monitor": _monitor,
        "tune": _tune,
        "sessions": _sessions,
        "lora": _lora,
    }
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012  (as Textual declares it)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(key), f"go('{mode}')", label, show=False)
            for key, (mode, label) in enumerate(MODE_LABELS.items(), start=1)
        ),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
    ]

    store_version: reactive[int] = reactive(-1)
    """Changes whenever anyone committed to the database."""

    parting: str = ""
    """What was said when leaving."""
    readings: int = 0
    """How often a screen was fed."""

    going_on: reactive[GoingOn] = reactive(GoingOn())
    """What runs on its own, as of the last reading."""

    def __init__(
        self,
        data_dir: Path,
        vllm: str | None,
        open_session: int | None = None,
        urls: tuple[str, ...] = (),
        monitor: bool = False,
        now: Callable[[], datetime] = datetime.now,
        records: "ForeignRecords | None" = None,
        open_training: int | None = None,
    ) -> None:
        super().__init__()
        self.data_dir = data_dir
        self.vllm = vllm
        self.open_session = open_session
        self.open_training = open_training
        self.urls = urls
        self.monitor = monitor or bool(urls)
        self.now = now
        self.records = records
        self.animation_level = "none"
        self._may_attach = False  # show a running session once we know of one, unless the person chose a screen
        self._view: LlmtuneScreen | None = None
        self._poller = Poller(database_file(data_dir), self._fed, self.post_message)
        self.collector = Collector(self)

    @cached_property
    def views(self) -> "ViewSource":
        """Sessions as they were read last, for all screens that show one. Of the poller's thread alone."""
        from tui.tune.tune_source import ViewSource

        return ViewSource()

    def on_mount(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._end_by_signal, number)
        self._begin()
        self.poll_store()
        if not self.monitor:
            self.set_timer(LOAD_AFTER_S, self.load_screens)

    @work(thread=True, group="load", description="imports what other screens need")
    def load_screens(self) -> None:
        """Import what the other screens need while the first one is looked at: half of what opening one would take. Not
        where a server is watched for hours and nothing else: ten MiB would stay for it, and twenty-five for the
        intervals of sessions, where there are any."""
        from tui import chart
        from tui.screens import monitor, sessions, tune  # noqa: F401

        if self._has_session():
            from tuning import statistics

            statistics.load()
        chart.load()
        gc.freeze()  # as when the program began: what was imported stays

    def _has_session(self) -> bool:
        from store.database import open_reader
        from store.errors import StoreError

        try:
            with open_reader(database_file(self.data_dir)) as reader:
                return reader.newest_session() is not None
        except StoreError:  # the poller says so
            return False

    def on_unmount(self) -> None:
        self.collector.release()
        self._poller.stop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)

    def _begin(self) -> None:
        if self.open_session is not None:
            self.switch_mode("tune")
        elif self.open_training is not None:
            self.switch_mode("lora")
        elif self.monitor:
            self.switch_mode("monitor")
        else:
            self._may_attach = True
            self.switch_mode("servers")

    def _end_by_signal(self, number: int) -> None:
        self.exit(return_code=128 + number)

    # the store

    @work(thread=True, group="poller", description="reads the database")
    def poll_store(self) -> None:
        self._poller.run()

    def ask(self) -> None:
        """Have the present screen fed at once."""
        self._poller.ask()

    def showing(self, screen: "LlmtuneScreen") -> None:
        """`screen` is shown now and is to be fed; what lies on top of it (help, a question) is not. Textual says so
        twice of a new screen, and what is read first is read in full."""
        if screen is not self._view:
            self._view = screen
            self.ask()

    def _fed(self) -> StoreView | None:
        return self._view

    @on(StoreRead)
    def _store_read(self, message: StoreRead) -> None:
        self.store_version = message.version
        self.going_on = message.going_on
        if self._view is None or not self._view.is_up:
            return
        self._view.show_store_error(None)
        if message.view is self._view:
            self._view.show(message.snapshot)
            self.readings += 1
        if self._may_attach:
            self._may_attach = False
            if any(s.state == "running" for s in self.going_on.sessions):
                self.action_go("tune")

    @on(StoreFailed)
    def _store_failed(self, message: StoreFailed) -> None:
        if self._view is not None and self._view.is_up:
            self._view.show_store_error(message.line)

    # keys

    def action_go(self, mode: str) -> None:
        """Show the screen of a number key."""
        self._may_attach = False
        self.switch_mode(mode)

    def monitor_server(self, server_id: int) -> None:
        """Show one of our servers in the Monitor."""
        self.action_go("monitor")
        self.call_later(self._watch, server_id)

    def edit_plan(self, path: Path) -> None:
        """Fill Tune's editor from a plan file."""
        self.action_go("tune")
        self.call_later(self._edit, path)

    def _edit(self, path: Path) -> None:
        from tui.screens.plan_editing import PlanEditing

        if isinstance(self.screen, PlanEditing):
            self.screen.open_plan(str(path))

    def show_server(self, server_id: int) -> None:
        """Show one of our servers, which may have been started just now, on the Servers screen."""
        self.action_go("servers")
        self.call_later(self._choose, server_id)

    def _choose(self, server_id: int) -> None:
        from tui.screens.servers import ServersScreen

        if isinstance(self.screen, ServersScreen):
            self.screen.choose_started(server_id)

    def _watch(self, server_id: int) -> None:
        from tui.screens.monitor import MonitorScreen

        if isinstance(self.screen, MonitorScreen):
            self.screen.watch_server(server_id)

    def action_help(self) -> None:
        """Keys and numbers of the present screen."""
        from tui.screens.help import HelpScreen

        if self._view is not None and self.screen is self._view:
            self.push_screen(HelpScreen(self._view))

    async def action_quit(self) -> None:
        """Leave; what runs goes on, and the normal screen then says so."""
        from engine.keeper.client import is_running

        self.parting = parting_words(self.going_on, partial(is_running, self.data_dir))
        self.exit(message=Text(self.parting) if self.parting else None)

    def get_system_commands(self, screen: Screen) -> Iterable[SystemCommand]:  # type: ignore[type-arg]
        own = self._view.commands() if self._view is not None and screen is self._view else ()
        general = app_commands(MODE_LABELS.items(), self.current_mode, self.action_go, self.action_help, self._leave)
        for command in (*own, *general):
            yield SystemCommand(command.title, command.help, cast(Callable[[], None], command.run))

    def _leave(self) -> None:
        self.run_worker(self.action_quit(), group="leave")
