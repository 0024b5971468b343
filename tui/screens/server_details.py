"""All that is known of one server, and what happened to it."""

from datetime import datetime
from typing import ClassVar

from textual import getters
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.text import clean
from store.records import EventRecord, ServerRecord
from tui.app import LlmtuneApp
from tui.format import local_clock
from tui.servers.server_text import command_line, detail_lines, details
from tui.widgets.copy import CopyPanel


class ServerDetails(ModalScreen[None]):
    """A page over the list, as it was when it was opened."""

    app = getters.app(LlmtuneApp)

    DEFAULT_CSS = """
    ServerDetails { align: center middle; }
    ServerDetails VerticalScroll {
        width: 100%; max-width: 110; height: auto; max-height: 100%; border: round $accent; background: $surface;
        padding: 0 1;
    }
    ServerDetails Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "close"),
        Binding("y", "copy", "copy"),
        Binding("j", "scroll_lines(1)", show=False),
        Binding("k", "scroll_lines(-1)", show=False),
    ]

    def __init__(self, server: ServerRecord, events: tuple[EventRecord, ...], now: datetime) -> None:
        super().__init__()
        self._server = server
        self._events = events
        self._now = now

    def compose(self) -> ComposeResult:
        with VerticalScroll() as page:
            page.border_title = f"server {self._server.id}"
            page.border_subtitle = "y copies the command line, esc closes"
            yield Static(id="all", markup=False)

    def on_resize(self) -> None:
        width = min(110, self.size.width) - 6
        rows = [("name", clean(self._server.name, 200)), *details(self._server, self._now)]
        history = [
            Content.assemble((f"{local_clock(event.at)}    ", "$text-muted"), clean(event.text, 300))
            for event in self._events
        ]
        page = Content("\n").join([detail_lines(rows, width), *([Content("")] if history else []), *history])
        self.query_one("#all", Static).update(page)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll the page by some lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_copy(self) -> None:
        """The command line."""
        line = command_line(self._server)
        if line:
            self.app.push_screen(CopyPanel(line, "Command line"))
