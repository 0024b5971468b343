"""One of the three lists of the LoRA screen, with its titles above it; the cursor goes on into the next list."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tui.lora.lines import RIGHT, TITLES, WIDTHS, Kind, LoraLine
from tui.widgets.line_list import LineList, in_columns

NAME_MOST = 44
LEAST_WIDTH = 80


def laid(kind: Kind, cells: Sequence[str], width: int) -> str:
    """The cells in their columns; what a wider terminal has more goes to the name, then to the last column."""
    first, *others = WIDTHS[kind]
    first = min(first + max(0, width - LEAST_WIDTH), NAME_MOST)
    return in_columns(cells, (first, *others), RIGHT[kind], width, gap=1)


class LoraList(LineList):
    """The lines of one kind."""

    class Passed(Message):
        """The cursor was moved beyond the end: `by` is −1 or 1."""

        def __init__(self, kind: Kind, by: int) -> None:
            super().__init__()
            self.kind = kind
            self.by = by

    def __init__(self, kind: Kind, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.kind = kind
        self._lines: Sequence[LoraLine] = ()

    def show(self, lines: Sequence[LoraLine]) -> None:
        """Show these lines; the cursor stays on its item."""
        if lines != self._lines:
            self._lines = lines
            self.lay([line.id for line in lines])

    @property
    def chosen(self) -> int | None:
        """The item under the cursor."""
        return self._lines[self.at].id if self.at < len(self._lines) else None

    def line(self, at: int, width: int) -> str:
        return laid(self.kind, self._lines[at].cells, width)

    def choose(self, id: int) -> None:
        """Put the cursor on an item, where it is in the list."""
        if id in self.ids:
            self.action_move(self.ids.index(id) - self.at)

    def action_move(self, by: int) -> None:
        """Within the list, or on to the next one."""
        if by in (-1, 1) and not 0 <= self.at + by < self.row_count:
            self.post_message(self.Passed(self.kind, by))
        else:
            super().action_move(by)


class LoraSection(Vertical):
    """Titles and list."""

    DEFAULT_CSS = """
    LoraSection { height: auto; }
    LoraSection .titles { height: 1; color: $text-muted; }
    LoraSection .none { height: 1; padding: 0 1; display: none; }
    LoraSection.-none LoraList { display: none; }
    LoraSection.-none .none { display: block; }
    """

    def __init__(self, kind: Kind, none: str) -> None:
        super().__init__(id=f"section-{kind}")
        self._kind = kind
        self._none = none

    def compose(self) -> ComposeResult:
        yield Static("", classes="titles", markup=False)
        yield LoraList(self._kind, id=self._kind)
        yield Static(self._none, classes="none", markup=False)

    @property
    def list(self) -> LoraList:
        return self.query_one(LoraList)

    def show(self, lines: Sequence[LoraLine], exist: bool) -> None:
        """`exist` says whether there are any at all, whatever the filter leaves."""
        self.set_class(not exist, "-none")
        self.list.show(lines)

    def lay_titles(self, width: int, rows: int) -> None:
        """Titles for so many cells; the list gets so many lines."""
        self.query_one(".titles", Static).update(Content(laid(self._kind, TITLES[self._kind], width)))
        self.list.styles.height = rows


def shares(counts: Sequence[int], room: int) -> list[int]:
    """How many of `room` lines each list gets, at least one: all it needs, or a like share of what there is."""
    given = [1 for _ in counts]
    wanted = [max(1, count) for count in counts]
    while sum(given) < room and given != wanted:
        at = min((at for at in range(len(counts)) if given[at] < wanted[at]), key=lambda at: given[at])
        given[at] += 1
    return given
