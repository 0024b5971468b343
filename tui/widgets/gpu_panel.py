"""Two lines for each GPU: memory of total; utilization with its history, power of its limit."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from tui.format import fixed, number
from tui.history import GpuRow, slots
from tui.widgets.spark import bar, blocks

NAME_W = 10


class GpuPanel(Static):
    """All GPUs that are read, or one line that says why none is."""

    DEFAULT_CSS = """
    GpuPanel { height: auto; max-height: 16; padding: 0 1; margin-top: 1; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def draw(self, gpus: Sequence[GpuRow], now: float, window_s: float, note: str | None) -> None:
        """Show the GPUs; `note` is said where there are none."""
        if not gpus:
            said = clean(note, 200) if note else "no GPU reading"
            self.update(Content.assemble((f"{'GPU':<{NAME_W}}", "$text-muted"), said))
            return
        lines: list[Content] = []
        for gpu in gpus:
            lines += self._lines(gpu, now, window_s)
        self.update(Content("\n").join(lines))

    def _lines(self, gpu: GpuRow, now: float, window_s: float) -> tuple[Content, Content]:
        room = max(8, self.size.width - 2 - NAME_W - 11 - 2 - 2 - 27)
        index, _, name = clean(gpu.name, 60).partition(" ")
        number_, _, model = name.partition(" ")
        label = f"{index} {number_}".strip()
        history = blocks(slots(gpu.util, now, window_s, room), top=100.0)[0]
        memory = Content.assemble(
            (f"{label:<{NAME_W}}", "$text-muted"),
            (fixed(gpu.used_gib, 11, 1, " GiB"), "bold"),
            "  ",
            (bar(gpu.used_gib, gpu.total_gib, room), "$primary"),
            "  ",
            f"of {number(gpu.total_gib, 1, ' GiB')}" if gpu.total_gib is not None else "used",
            f"  {number(gpu.temp_c, 0, ' °C')}" if gpu.temp_c is not None else "",
        )
        power = (
            f"{number(gpu.power_w)} of {number(gpu.limit_w)} W"
            if gpu.limit_w is not None
            else number(gpu.power_w, 0, " W")
        )
        work = Content.assemble(
            (f"{clean(model, NAME_W - 1).removeprefix('NVIDIA ')[: NAME_W - 1]:<{NAME_W}}", "$text-muted"),
            (fixed(gpu.util_perc, 11, 0, " %"), "bold"),
            "  ",
            (history.rjust(room), "$primary"),
            "  ",
            power,
        )
        return memory, work
