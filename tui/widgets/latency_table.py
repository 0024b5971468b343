"""Latencies of the window: four rows where room is short, all seven and their histories where there is more."""

from typing import ClassVar

from engine.samples.window import Window
from tui.panels.latencies import COMPACT, FULL, Units, history_width, latency_rows, read_latencies
from tui.panels.slots import Slots, percentile_of, slots_across
from tui.screens.base import Number
from tui.widgets.lines import Lines


class LatencyTable(Lines):
    """A heading and a row for each latency: 5 rows high, or 8 for all of them."""

    DEFAULT_CSS = "LatencyTable { height: 5; padding: 0 1; }"

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("p50 p90 p99", "half, 90 % and 99 % of what ended in the window took at most this long"),
        Number("<10 ms", "below the first bound of the server's histogram, which says no more; > above its last"),
        Number("TTFT", "time to first token: from a request's arrival until its first token"),
        Number("ITL", "inter-token latency: between two outputs of a request"),
        Number("TPOT", "time per output token after the first, of whole requests"),
        Number("queue", "a request's time until it was first scheduled"),
        Number("prefill", "from then until its first token"),
        Number("decode", "from its first token until its last"),
        Number("end to end", "from a request's arrival until its last token"),
        Number("mean, count", "exact mean of the window, and how many it is of"),
    )

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
