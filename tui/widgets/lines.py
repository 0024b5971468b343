"""A widget of fixed lines that draws anew only the cells that differ: what the Monitor's panels stand on.

Once a second most figures are what they were. Comparing rows of text costs microseconds; laying out and rendering a
Static costs a millisecond, and each cell that is sent costs a terminal over SSH.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style
from textual.color import TRANSPARENT
from textual.css.parse import parse_declarations
from textual.css.styles import StylesBase
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from tui.panels.row import Row, text_of

LOOKS: dict[str, tuple[str | None, bool]] = {
    "muted": ("text-muted", False),
    "strong": (None, True),
    "good": ("success", False),
    "warning": ("warning", True),
    "error": ("error", True),
    "accent": ("accent", False),
}
"""How a kind of piece looks: in which colour of the theme, and whether bold. Not component classes: Textual makes a
node for each of these in each widget, and applies all rules to them whenever it does so to the widget. With them the
Monitor's first opening took half as long again."""


@lru_cache(maxsize=64)
def _declared(color: str) -> StylesBase:
    """`color` as the style sheet would read it: a colour, or `auto 60%`, which is told by what it stands on."""
    return parse_declarations(f"color: {color};", ("lines", color))


class Lines(Widget):
    """Shows rows of pieces, cut at its own width; rows beyond its height are left out."""

    DEFAULT_CSS = "Lines { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[Row, ...] = ()
        self._looks: dict[str, Style] = {}
        self._room: Size | None = None

    @property
    def room(self) -> Size:
        """Cells for what it shows: those it was placed at, else those it has."""
        return self._room or self.content_size

    def take_room(self, width: int, height: int) -> None:
        """Show it `height` lines high, or not at all. `width` is what a line of it holds once that is laid out: known
        before, so that it is drawn once, and not once more after the layout."""
        self.display = height > 0
        if height:
            self.styles.height = height
        self._room = Size(width, height)

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
            found = self._looks[kind] = self._look_of(*LOOKS[kind]) if kind else self.rich_style
        return found

    def _look_of(self, name: str | None, bold: bool) -> Style:
        """The widget's own style, bold, in a colour of the theme."""
        looks = self.rich_style + Style(bold=bold or None)
        if name is None:
            return looks
        background = self.visual_style.background or TRANSPARENT
        declared = _declared(self.app.theme_variables[name])
        color = background.get_contrast_text(declared.color.a) if declared.auto_color else declared.color
        return looks + Style(color=(background + color).rich_color)


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
