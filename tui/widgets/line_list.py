"""A list with a cursor, one line an item, as many thousand as there are: only the lines that are seen are ever made."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineList(ScrollView, can_focus=True):
    """The items by their ids. A subclass says what an item's line is, and `lay`s other items."""

    DEFAULT_CSS = """
    LineList { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open"),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1000000000)", show=False),
        Binding("end", "move(1000000000)", show=False),
    ]

    class Chosen(Message):
        """Another item lies under the cursor."""

    class Opened(Message):
        """Enter, or a click on the item under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._ids: Sequence[int] = ()
        self._at = 0

    def line(self, at: int, width: int) -> str:
        """The line of the item at this place, at most so many cells."""
        raise NotImplementedError

    @property
    def ids(self) -> tuple[int, ...]:
        """The items, in their order."""
        return tuple(self._ids)

    @property
    def at(self) -> int:
        """The place of the cursor."""
        return self._at

    @property
    def row_count(self) -> int:
        """How many items there are."""
        return len(self._ids)

    def lay(self, ids: Sequence[int], to_end: bool = False) -> None:
        """Show these items in this order; the cursor stays on its item, or goes to the last, or to the first."""
        before = self._ids[self._at] if self._at < len(self._ids) else None
        self._ids = ids
        if to_end:
            self._at = max(0, len(ids) - 1)
        elif not (self._at < len(ids) and ids[self._at] == before):
            self._at = next((at for at, id in enumerate(ids) if id == before), 0)
        self.virtual_size = Size(self.size.width, len(ids))
        self._see()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        width = self.size.width
        style = self.rich_style
        if at >= len(self._ids):
            return Strip.blank(width, style)
        if at == self._at:
            style += Style(reverse=True) if self.has_focus else Style(bold=True)
        return Strip([Segment(self.line(at, width), style)]).adjust_cell_length(width, style)

    def action_move(self, by: int) -> None:
        """Move the cursor by so many items."""
        at = min(max(self._at + by, 0), max(0, len(self._ids) - 1))
        if at != self._at:
            self._at = at
            self._see()
            self.refresh()
            self.post_message(self.Chosen())

    def action_page(self, by: int) -> None:
        """Move by what is seen at once."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_open(self) -> None:
        """Open the item under the cursor."""
        if self._ids:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Choose an item, open the chosen one."""
        at = event.y + self.scroll_offset.y
        if at == self._at:
            self.action_open()
        elif at < len(self._ids):
            self.action_move(at - self._at)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _see(self) -> None:
        self.scroll_to_region(Region(0, self._at, 1, 1), animate=False, force=True)


def in_columns(words: Sequence[str], widths: Sequence[int], right: frozenset[int], width: int, gap: int = 2) -> str:
    """Cells in their columns, one blank before each, those of `right` at the right; the last, for which no width is
    given, has what is left of `width`, and `gap` blanks before it."""
    parts = []
    for at, (text, room) in enumerate(zip(words, widths, strict=False)):
        shown = cut(text, room - 1)
        blanks = " " * (room - 1 - cell_len(shown))
        parts.append(f" {blanks}{shown}" if at in right else f" {shown}{blanks}")
    rest = width - sum(widths) - gap
    parts.append(f"{' ' * gap}{cut(words[-1], rest)}" if rest > 0 else "")
    return "".join(parts)


def cut(text: str, room: int) -> str:
    """At most so many cells of it, its end an ellipsis where something is left out."""
    return text if cell_len(text) <= room else set_cell_size(text, max(0, room - 1)) + "…"
