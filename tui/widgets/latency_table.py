"""Latencies of the window: four rows where room is short, all seven and their histories where there is more."""

from engine.samples.window import Window
from tui.panels.latencies import COMPACT, FULL, Units, history_width, latency_rows, read_latencies
from tui.panels.slots import Slots, percentile_of, slots_across
from tui.widgets.lines import Lines


class LatencyTable(Lines):
    """A heading and a row for each latency: 5 rows high, or 8 for all of them."""

    DEFAULT_CSS = "LatencyTable { height: 5; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._units = Units()
        self._slots = Slots()
        self._drawn: tuple[object, ...] = ()

    def draw(self, window: Window, answers: bool) -> None:
        """Show the window. Without `answers` nothing holds now: each figure is `–`."""
        width, height = self.room
        drawn = (window, window.newest, answers, self.room)
        if drawn == self._drawn or not self.display:
            return
        self._drawn = drawn
        names = FULL if height > len(FULL) else COMPACT
        histories: dict[str, list[float | None]] = {}
        if room := history_width(width):
            self._slots.follow(window, slots_across(room, window.seconds))
            histories = {name: self._slots.values((name, 50.0), percentile_of(name, 50.0)) for name in names}
        found = read_latencies(window, names) if answers else {}
        self.show(latency_rows(found, names, window.seconds, answers, width, self._units, histories))
