"""A chart that is drawn for the room it has, and anew when that changes.

Who gives it what to draw cannot know when the lines around it have taken their own room.
"""

from collections.abc import Sequence

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from tui import chart


class Picture(Widget):
    """Draws series on their axes; a line of words where there is nothing to draw."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: tuple[Sequence[chart.Series], chart.Axes] | None = None
        self._words = ""
        self._kept: tuple[Size, Text] | None = None  # what was drawn last, and for which room

    def draw(self, series: Sequence[chart.Series], axes: chart.Axes) -> None:
        """Show these."""
        self._shown, self._kept = (series, axes), None
        self.refresh()

    def say(self, words: str) -> None:
        """Show these words in their place."""
        self._shown, self._words = None, words
        self.refresh()

    def render(self) -> Text:
        """Drawn here and not on a Resize: Textual sends none where the layout was looked at before it was made."""
        room = self.content_size
        if self._shown is None or not room:
            return Text(self._words if self._shown is None else "")
        if self._kept is None or self._kept[0] != room:
            self._kept = room, chart.draw(*self._shown, *room)
        return self._kept[1]
