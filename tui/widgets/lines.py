"""A widget of fixed lines that draws anew only the cells that differ: what the Monitor's panels stand on.

Once a second most figures are what they were. Comparing rows of text costs microseconds; laying out and rendering a
Static costs a millisecond, and each cell that is sent costs a terminal over SSH.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.panels.row import Row, text_of


class Lines(Widget):
    """Shows rows of pieces, cut at its own width; rows beyond its height are left out."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"lines--{kind}" for kind in ("muted", "strong", "good", "warning", "error", "accent")
    }

    DEFAULT_CSS = """
    Lines { height: 1; }
    Lines > .lines--muted { color: $text-muted; }
    Lines > .lines--strong { text-style: bold; }
    Lines > .lines--good { color: $success; }
    Lines > .lines--warning { color: $warning; text-style: bold; }
    Lines > .lines--error { color: $error; text-style: bold; }
    Lines > .lines--accent { color: $accent; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[Row, ...] = ()
        self._looks: dict[str, Style] = {}

    @property
    def rows(self) -> tuple[Row, ...]:
        """What is shown."""
        return self._rows

    @property
    def text(self) -> str:
        """What is shown, without colours: for a test or a copy."""
        return "\n".join(map(text_of, self._rows))

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows; only what differs from what is shown is drawn."""
        before, self._rows = self._rows, tuple(rows)
        if before == self._rows:
            return
        width = self.content_size.width
        regions = [
            _changed(old, new, y, width)
            for y, (old, new) in enumerate(zip_longest(before, self._rows, fillvalue=()))
            if old != new and y < self.content_size.height
        ]
        if regions:
            self.refresh(*regions)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        row = self._rows[y] if y < len(self._rows) else ()
        return Strip([Segment(text, self._look(kind)) for text, kind in row if text]).adjust_cell_length(
            width, self._look("")
        )

    def _look(self, kind: str) -> Style:
        found = self._looks.get(kind)
        if found is None:
            found = self.get_component_rich_style(f"lines--{kind}") if kind else self.rich_style
            self._looks[kind] = found
        return found


def _changed(old: Row, new: Row, y: int, width: int) -> Region:
    """The cells of a line that differ. Where a character may be wider than a cell, the whole line."""
    before, after = text_of(old), text_of(new)
    if len(before) != len(after) or [(len(text), kind) for text, kind in old] != [(len(t), kind) for t, kind in new]:
        return Region(0, y, width, 1)
    if not (_narrow(before) and _narrow(after)):
        return Region(0, y, width, 1)
    differ = [at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    first, end = differ[0], min(width, differ[-1] + 1)
    return Region(first, y, max(1, end - first), 1)


def _narrow(text: str) -> bool:
    """Whether each character takes one cell: ASCII, and what our own figures are drawn with."""
    return text.isascii() or all(char < "\u0300" or "\u2010" <= char <= "\u259f" for char in text)
