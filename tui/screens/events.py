"""All that happened to one server, the newest first."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from store.records import EventRecord
from tui.legend import Number
from tui.panels.events import LEVELS, MOST, Told, fold, joined, matching, said
from tui.screens.filtering import FilteringScreen
from tui.widgets.copy import CopyPanel
from tui.widgets.event_log import EventList

if TYPE_CHECKING:
    from store.reader import Reader

FEW = 200  # read each second; all are read only where these are all new
LEAST_WORDS = ("every level", "warnings and errors", "errors")
NOTHING = "Nothing happened yet."
NOT_SO = "No event is like that; esc shows all."


class EventsScreen(FilteringScreen):
    """Of a server of ours what the store holds; with it, or for a foreign one alone, what its samples tell."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("· ▲ ✗", "how grave it is: for your information, a warning, an error"),
        Number("x12 since …", "the same happened so often, one after the other; the clock before it is the last time"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", key_display="/", tooltip="only events with these words; esc shows all"),
        Binding("l", "level", "level", tooltip="all events, warnings and errors, errors alone"),
        Binding("y", "copy", "copy", tooltip="the chosen event, whole"),
        Binding("escape,e", "back", "back"),
    ]

    DEFAULT_CSS = """
    EventsScreen #title { height: 1; padding: 0 1; }
    EventsScreen #said { height: 3; padding: 0 1; color: $text-muted; }
    """

    def __init__(
        self, server_id: int | None, title: str, also: Callable[[], Sequence[EventRecord]] = tuple[EventRecord]
    ) -> None:
        """`title` names the server. `also` gives events that stand in no store, in time order; it is asked once a
        second, on the UI thread."""
        super().__init__()
        self._server_id = server_id
        self._name = clean(title, 60)
        self._also = also
        self._read: tuple[EventRecord, ...] = ()  # of the poller's thread alone
        self._is_whole = False
        self._sources: tuple[Sequence[EventRecord], Sequence[EventRecord]] | None = None  # what is shown
        self._every = 0
        self._told: list[Told] = []
        self._least = 0

    def compose_body(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield self.filter_line("the event")
        yield EventList(id="events")
        yield Static("", id="said", markup=False)

    def on_mount(self) -> None:
        self.query_one(EventList).focus()

    @property
    def filtered_list(self) -> EventList:
        return self.query_one(EventList)

    # feeding

    def refresh_from_store(self, reader: "Reader") -> tuple[EventRecord, ...]:
        """The server's events, the newest last; the same object while nothing was added. First those that a screen
        has room for: all of ten thousand take a tenth of a second."""
        if self._server_id is None:
            return ()
        newest = reader.events(server_id=self._server_id, limit=FEW)
        if not self._read:
            self._read, self._is_whole = tuple(newest), len(newest) < FEW
            return self._read
        new = [one for one in newest if one.id is not None and one.id > (self._read[-1].id or 0)]
        if not self._is_whole or len(new) == len(newest):
            self._read, self._is_whole = tuple(reader.events(server_id=self._server_id, limit=MOST)), True
        elif new:
            self._read = (*self._read, *new)[-MOST:]
        return self._read

    def show(self, snapshot: tuple[EventRecord, ...]) -> None:
        """Fill the list where anything was added."""
        sources = (snapshot, tuple(self._also()))
        if self._sources is not None and sources[0] is self._sources[0] and sources[1] == self._sources[1]:
            return
        self._sources = sources
        happened = joined(*sources) if sources[1] else snapshot
        self._every, self._told = len(happened), fold(happened)
        self.fill()
        if len(snapshot) == FEW:
            self.app.ask()  # for the rest

    def redraw(self) -> None:
        self.fill()

    def fill(self) -> None:
        if self._sources is None:
            return
        self.query_one(EventList).fill(matching(self._told, self.filter_words, LEVELS[self._least]))
        self._say()

    @on(EventList.Chosen)
    def _say(self) -> None:
        """Which of them are seen, and the chosen one whole."""
        shown = self.query_one(EventList)
        first, last = shown.place
        seen = f"{first:,} to {last:,} of {shown.count:,}" if shown.count else "none"
        title = f"events of {self._name}  {seen}  ({self._every:,} in all; {LEAST_WORDS[self._least]})"
        self.query_one("#title", Static).update(Content(title), layout=False)
        words = said(shown.chosen) if shown.chosen is not None else (NOT_SO if self._every else NOTHING)
        self.query_one("#said", Static).update(Content(words), layout=False)

    # keys

    def action_level(self) -> None:
        """The next least level."""
        self._least = (self._least + 1) % len(LEVELS)
        self.fill()

    def action_copy(self) -> None:
        """The chosen event, to the clipboard and shown."""
        chosen = self.query_one(EventList).chosen
        if chosen is not None:
            self.app.push_screen(CopyPanel(said(chosen), "Event"))

    def show_all(self) -> bool:
        """Events of all levels too."""
        was, self._least = self._least, 0
        if was:
            self.fill()
        return super().show_all() or was > 0
