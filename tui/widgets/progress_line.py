"""A bar of one line with words beside it."""

import math

from textual.content import Content
from textual.widget import Widget

FULL, EMPTY = "█", "░"


class ProgressLine(Widget):
    """`██████░░░░  run 2 of 3 chat on [2048, 0.9]`. The bar takes half of the line, at most 40 cells."""

    DEFAULT_CSS = """
    ProgressLine { height: 1; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._share = 0.0
        self._words = ""

    def show(self, share: float, words: str) -> None:
        """`share` is 0 to 1; anything else is drawn as the nearer end, NaN as 0. `words` must be clean."""
        share = min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0
        if (share, words) != (self._share, self._words):
            self._share, self._words = share, words
            self.refresh()

    def render(self) -> Content:
        room = self.content_size.width
        cells = max(8, min(40, room // 3))
        full = round(self._share * cells)
        bar = Content.styled(FULL * full, "$accent") + Content.styled(EMPTY * (cells - full), "dim")
        return Content.assemble(bar, f" {round(100 * self._share):3d} %  ", self._words).truncate(room, ellipsis=True)
