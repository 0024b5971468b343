"""The GPUs of the server that is watched."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from engine.gpu_owners import NOBODY, Owners
from engine.samples.window import Window
from tui.panels.gpu_reading import gpus_of, power_of, util_of
from tui.panels.gpus import gpu_rows, history_width
from tui.panels.slots import Slots, gauge
from tui.screens.base import Number
from tui.widgets.lines import Lines


class GpuPanel(Lines):
    """As much of the GPUs as its height has room for: two lines for one, then its details; see tui/panels/gpus.py."""

    DEFAULT_CSS = "GpuPanel { height: 3; padding: 0 1; }"

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("GPU n", "memory in use by all processes, in GiB (2^30 bytes), of what the GPU has"),
        Number("█ ▒ ░ │", "memory in use, kept by the driver, free; where the server's budget ends"),
        Number("budget", "gpu-memory-utilization of what the driver leaves: what vLLM plans with"),
        Number("its model", "share of the last sampling period in which a kernel ran: 100 % is not full speed"),
        Number("W, MHz, °C", "power of its limit; clock of the streaming multiprocessors; ! near where heat slows it"),
        Number("power", "with its history up to its limit; energy by the GPU's own counter over the window"),
        Number("! power cap", "what holds the clock down now; +1: one more reason"),
        Number("J/token", "energy of the server's GPUs for each token generated in the window"),
        Number("PCIe", "the link now, of what it can be; an idle one may fall back; in and out as of some seconds ago"),
        Number("ECC", "memory errors since the driver was loaded; corrected ones do no harm"),
        Number("on it", "processes by memory; ours by what was recorded, never by name"),
        Number("not visible from here", "a pid of the host's, or of another container"),
    )

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
