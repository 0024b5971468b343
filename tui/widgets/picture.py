"""A chart that is drawn for the room it has, and anew when that changes.

Who gives it what to draw cannot know when the lines around it have taken their own room.
"""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from tui import chart


class Picture(Static):
    """Draws series on their axes; a line of words where there is nothing to draw."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id, markup=False)
        self._shown: tuple[Sequence[chart.Series], chart.Axes] | None = None

    def draw(self, series: Sequence[chart.Series], axes: chart.Axes) -> None:
        """Show these."""
        self._shown = series, axes
        self._draw()

    def say(self, words: str) -> None:
        """Show these words in their place."""
        self._shown = None
        self.update(Content(words))

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._shown is not None and self.content_size:
            self.update(chart.draw(*self._shown, *self.content_size))
