"""One measured quantity on one line: its name, the value now, its history, what belongs to it."""

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from tui.widgets.spark import blocks

LABEL_W, VALUE_W, NOTE_W = 10, 11, 27


class Gauge(Widget):
    """`KV cache   71.4 %  ▂▃▃▄▅▅▆▆▇  188,688 tokens`. Taller than a line, the history grows and the words do not.

    `slots(width)` gives the history of the last `width` slots of time; it is asked while rendering, as only then the
    width is known.
    """

    DEFAULT_CSS = """
    Gauge { height: 1; padding: 0 1; }
    """

    def __init__(self, label: str, colour: str = "$accent", id: str | None = None) -> None:
        super().__init__(id=id)
        self._label = label
        self._colour = colour
        self._value = ""
        self._note = Content()
        self._history: Sequence[float | None] = ()
        self._top: float | None = None

    @property
    def slots(self) -> int:
        """How many slots of history there is room for."""
        return max(1, self.size.width - LABEL_W - VALUE_W - NOTE_W - 4)

    def set(
        self, value: str, history: Sequence[float | None], note: str | Content = "", top: float | None = None
    ) -> None:
        """Show `value` (already with its unit), `history` (oldest first, one a slot) from 0 to `top`, and `note`."""
        self._value = value
        self._history = history
        self._note = note if isinstance(note, Content) else Content(note)
        self._top = top
        self.refresh()

    def render(self) -> Content:
        height = max(1, self.size.height - (1 if self.size.height > 1 else 0))
        width = self.slots
        lines = blocks(self._history[-width:], height, self._top)
        rows = []
        for at, line in enumerate(lines):
            last = at == len(lines) - 1
            rows.append(
                Content.assemble(
                    (f"{self._label if last else '':<{LABEL_W}}", "$text-muted"),
                    (f"{self._value if last else '':>{VALUE_W}}", "bold"),
                    "  ",
                    (line.rjust(width), self._colour),
                    "  ",
                    self._note.truncate(NOTE_W) if last else "",
                )
            )
        return Content("\n").join(rows)
