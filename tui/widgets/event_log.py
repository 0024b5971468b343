"""Events: a few lines of them for the Monitor, and a list that one moves through."""

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from store.records import EventRecord
from tui.panels.events import Told, event_rows, fold
from tui.widgets.lines import Lines

LOOKED_AT = 500  # events, of which the few lines of the Monitor are made


class EventLog(Lines):
    """The newest first, as many as there are lines."""

    DEFAULT_CSS = "EventLog { height: 2; padding: 0 1; }"

    def draw(self, happened: Sequence[EventRecord]) -> None:
        """Show events given in time order."""
        width, height = self.room
        self.show(event_rows(fold(happened[-LOOKED_AT:]), width, height))


class EventList(Lines, can_focus=True):
    """All events, of which only those that are seen are drawn. It follows the newest while the cursor stands there;
    else the cursor stays on its event, and what it sees stays where it is."""

    DEFAULT_CSS = "EventList { height: 1fr; padding: 0 1; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "move(-1000000)", show=False),
        Binding("end,G", "move(1000000)", show=False),
    ]

    class Chosen(Message):
        """The cursor stands on another event."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._told: list[Told] = []
        self._at = 0
        self._top = 0

    @property
    def chosen(self) -> Told | None:
        """The event under the cursor."""
        return self._told[self._at] if self._at < len(self._told) else None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._told)

    @property
    def place(self) -> tuple[int, int]:
        """The first and the last event that are seen, counted from 1."""
        return self._top + 1, min(len(self._told), self._top + self.content_size.height)

    def fill(self, told: list[Told]) -> None:
        """Show these, the newest first."""
        before, seen_at = self.chosen, self._at - self._top
        self._told = told
        if before is not None and self._at > 0:
            # New ones come on top, and a folded one may have grown: what was first said then is the same event.
            known = (at for at, one in enumerate(told) if one.first == before.first and one.text == before.text)
            self._at = next(known, 0)
            self._top = self._at - seen_at
        self._draw()

    def _draw(self) -> None:
        width, height = self.content_size
        self._at = min(self._at, max(0, len(self._told) - 1))
        self._top = max(0, min(self._top, self._at, len(self._told) - height), self._at - height + 1)
        self.show(event_rows(self._told[self._top :], width, height, day=True))

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if y + self._top == self._at and self._told:
            return strip.apply_style(Style(reverse=True) if self.has_focus else Style(bold=True))
        return strip

    def action_move(self, by: int) -> None:
        """Move the cursor by so many events."""
        at = min(max(self._at + by, 0), max(0, len(self._told) - 1))
        if at != self._at:
            self._at = at
            self._draw()
            self.refresh()
            self.post_message(self.Chosen())

    def action_page(self, by: int) -> None:
        """Move by what is seen at once."""
        self.action_move(by * max(1, self.content_size.height - 1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Three events at a time."""
        event.stop()
        self.action_move(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_move(3)

    def on_click(self, event: events.Click) -> None:
        """Choose an event."""
        at = event.y + self._top
        if at < len(self._told):
            self.action_move(at - self._at)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
