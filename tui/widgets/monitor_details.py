"""All that the Monitor knows beside its gauges, on one canvas: as many panels as there is room for, then histories.

One widget, not one a panel: each widget costs the terminal a layout and the processor a millisecond a second, and what
a panel says is a pure function of the window (tui/panels).
"""

from collections.abc import Sequence

from engine.limiting.knobs import Knobs
from engine.samples.window import Window
from tui.panels.adapters import adapter_rows
from tui.panels.engines import engine_rows
from tui.panels.histories import HISTORIES, history_rows, how_many
from tui.panels.requests import request_rows
from tui.panels.row import GAP, NARROWEST, Row, beside
from tui.panels.scheduler import scheduler_rows
from tui.panels.slots import Slots, slots_across
from tui.panels.speculation import speculation_rows
from tui.widgets.lines import Lines


class MonitorDetails(Lines):
    """Packs the panels into columns by the size it has. One that has nothing to show takes no room."""

    DEFAULT_CSS = "MonitorDetails { width: 1fr; height: 1fr; padding: 0 0 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._slots = Slots()
        self._drawn: tuple[object, ...] = ()

    def draw(self, window: Window, answers: bool, knobs: Knobs | None = None, kv_tokens: float | None = None) -> None:
        """Show the window. `kv_tokens` is the KV cache's size where the server itself does not tell it."""
        width, height = self.room
        if not self.display or width < 1 or height < 1:
            return
        drawn = (window, window.newest, answers, knobs, kv_tokens, self.room)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        columns, column_width = columns_of(width)
        most = knobs.max_num_seqs.value if knobs is not None else None
        panels = (
            scheduler_rows(window, answers, column_width, kv_tokens),
            engine_rows(window, answers, column_width),
            request_rows(window, answers, column_width, most),
            adapter_rows(window, answers, column_width),
            speculation_rows(window, answers, column_width),
        )

        packed = pack(panels, columns, height)
        first = 0
        for column in packed:
            room = height - len(column)
            if how_many(room) and first < len(HISTORIES):
                self._slots.follow(window, slots_across(column_width, window.seconds))
                which = HISTORIES[first:]
                column += history_rows(self._slots, window.seconds, answers, column_width, room, which)
                first += how_many(room)
        self.show(beside(packed, [column_width] * columns, height))


def columns_of(width: int) -> tuple[int, int]:
    """How many columns, and how wide each is."""
    columns = max(1, (width + GAP) // (NARROWEST + GAP))
    return columns, (width - GAP * (columns - 1)) // columns


def pack(panels: Sequence[Sequence[Row]], columns: int, height: int) -> list[list[Row]]:
    """Each panel whole into the first column that has room for it, the first panels first; one without room is left
    out."""
    packed: list[list[Row]] = [[] for _ in range(columns)]
    for panel in panels:
        column = next((one for one in packed if len(one) + len(panel) <= height), None)
        if column is not None:
            column += panel
    return packed
