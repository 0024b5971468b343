"""The GPUs: memory of total, utilization with its history, power of its limit, temperature, clock, throttling."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from tui.format import fixed, number
from tui.history import GpuRow, slots
from tui.widgets.gauge import LABEL_W, NOTE_W, VALUE_W
from tui.widgets.spark import bar, blocks

ROOMY = 2  # up to so many GPUs take three lines each, more one


class GpuPanel(Static):
    """All GPUs that are read, or one line that says why none is."""

    DEFAULT_CSS = """
    GpuPanel { height: auto; max-height: 16; padding: 0 1; margin-top: 1; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def draw(
        self, gpus: Sequence[GpuRow], end: float, window_s: float, utilization: float | None, note: str | None
    ) -> None:
        """Show the GPUs, with histories up to `end`, and vLLM's share of them; `note` is said where there is none."""
        if not gpus:
            said = clean(note, 200) if note else "no GPU reading"
            self.update(Content.assemble((f"{'GPU':<{LABEL_W}}", "$text-muted"), said))
            return
        lines: list[Content] = []
        for gpu in gpus:
            roomy = len(gpus) <= ROOMY
            lines += self._lines(gpu, end, window_s, utilization) if roomy else [self._one_line(gpu)]
            if roomy or gpu.throttled:
                lines.append(_clock(gpu))
        self.update(Content("\n").join(lines))

    def _lines(self, gpu: GpuRow, end: float, window_s: float, utilization: float | None) -> list[Content]:
        room = max(8, self.size.width - LABEL_W - VALUE_W - NOTE_W - 4)
        label, model = _names(gpu)
        history = blocks(slots(gpu.util, end, window_s, room), top=100.0)[0]
        memory = Content.assemble(
            (f"{label:<{LABEL_W}}", "$text-muted"),
            (fixed(gpu.used_gib, VALUE_W, 1, " GiB"), "bold"),
            "  ",
            (bar(gpu.used_gib, gpu.total_gib, room), "$primary"),
            "  ",
            _spaced(
                f"of {number(gpu.total_gib, 1, ' GiB')}" if gpu.total_gib is not None else "in use",
                f"budget {utilization:g}" if utilization is not None else "",
            ),
        )
        work = Content.assemble(
            (f"{model:<{LABEL_W}}", "$text-muted"),
            (fixed(gpu.util_perc, VALUE_W, 0, " %"), "bold"),
            "  ",
            (history.rjust(room), "$primary"),
            "  ",
            _spaced(_power(gpu), number(gpu.temp_c, 0, " °C") if gpu.temp_c is not None else ""),
        )
        return [memory, work]

    def _one_line(self, gpu: GpuRow) -> Content:
        room = max(6, self.size.width - LABEL_W - 16 - 2 - 2 - 32)
        label, _ = _names(gpu)
        return Content.assemble(
            (f"{label:<{LABEL_W}}", "$text-muted"),
            (f"{fixed(gpu.used_gib, 6, 1)} of {fixed(gpu.total_gib, 6, 1)}", "bold"),
            "  ",
            (bar(gpu.used_gib, gpu.total_gib, room), "$primary"),
            "  ",
            f"{fixed(gpu.util_perc, 5, 0, ' %')} {_power(gpu):>15} {fixed(gpu.temp_c, 7, 0, ' °C')}",
        )


def _names(gpu: GpuRow) -> tuple[str, str]:
    """`GPU 0` and the model without its maker, each in the room of a label."""
    model = clean(gpu.model, 60).removeprefix("NVIDIA ").removeprefix("GeForce ")
    return f"GPU {gpu.index}".strip(), Content(model).truncate(LABEL_W - 1, ellipsis=True).plain


def _clock(gpu: GpuRow) -> Content:
    """The clock, and what holds it down."""
    said: tuple[str, str] = ("", "")
    if gpu.throttled:
        said = (f"⚠ throttled: {clean(', '.join(gpu.throttled), 60)}", "bold $warning")
    elif gpu.throttled is not None:
        said = ("not throttled", "")
    return Content.assemble(
        (f"{'clock':<{LABEL_W}}", "$text-muted"), (fixed(gpu.clock_mhz, VALUE_W, 0, " MHz"), "bold"), "  ", said
    )


def _power(gpu: GpuRow) -> str:
    if gpu.limit_w is None:
        return number(gpu.power_w, 0, " W")
    return f"{number(gpu.power_w)} of {number(gpu.limit_w)} W"


def _spaced(*parts: str) -> str:
    return "  ".join(part for part in parts if part)
