"""One sentence: what limits the server, and what can be done about it."""

from engine.limiting.bottleneck import Limit
from tui.panels.limit import limit_rows
from tui.widgets.lines import Lines


class LimitLine(Lines):
    """Two or three lines. Empty while there is nothing to say, or while the server does not answer."""

    DEFAULT_CSS = "LimitLine { height: 2; padding: 0 1; }"

    def draw(self, limit: Limit | None, answers: bool) -> None:
        """Show the sentence; a finding of another time than now is none."""
        size = self.room
        self.show(limit_rows(limit if answers else None, size.width, size.height))
