"""The GPUs of the server that is watched."""

from collections.abc import Callable
from functools import partial

from engine.gpu_owners import NOBODY, Owners
from engine.samples.window import Window
from tui.panels.gpu_reading import gpus_of, power_of, util_of
from tui.panels.gpus import gpu_rows, history_width
from tui.panels.slots import Slots, gauge
from tui.widgets.lines import Lines


class GpuPanel(Lines):
    """As much of the GPUs as its height has room for: two lines for one, then its details; see tui/panels/gpus.py."""

    DEFAULT_CSS = "GpuPanel { height: 3; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._slots = Slots()
        self._drawn: tuple[object, ...] = ()
        self._again: Callable[[], None] | None = None

    def on_resize(self) -> None:
        """What it shows depends on its size, which it may be given after it was drawn."""
        if self._again is not None:
            self._again()

    def draw(
        self,
        window: Window,
        answers: bool,
        end: float | None = None,
        *,
        utilization: float | None = None,
        note: str | None = None,
        chosen: int = 0,
        owners: Owners = NOBODY,
    ) -> None:
        """Show the newest sample's GPUs, or `note` in their place. `utilization` is the server's
        gpu-memory-utilization, `chosen` counts the presses of `g`; histories end at the newest sample, at or before
        `end` (unix seconds). Without `answers` the server says nothing now, and no energy is shared out to tokens."""
        self._again = partial(
            self.draw, window, answers, end, utilization=utilization, note=note, chosen=chosen, owners=owners
        )
        width, height = self.room
        asked = (window, window.newest, answers, utilization, note, chosen, owners, width, height)
        if asked == self._drawn or not self.display or not width:
            return
        self._drawn = asked
        util: list[float | None] = []
        power: list[float | None] = []
        gpus = gpus_of(window.newest)
        if gpus and not note and (room := history_width(width)):
            key = gpus[chosen % len(gpus)].key
            self._slots.follow(window, room)
            util = self._slots.values(("util", key), gauge(lambda sample: util_of(sample, key)))
            power = self._slots.values(("power", key), gauge(lambda sample: power_of(sample, key)))
        self.show(gpu_rows(window, answers, width, height, util, power, utilization, note, chosen, owners))
