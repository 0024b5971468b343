"""The Monitor's blocks, placed by the room there is and drawn from one subject."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.widget import Widget

from tui.monitor.monitor_layout import TALL, Places, places, side_width
from tui.monitor.subject import Subject
from tui.panels.gauges import gauge_rows, history_width, readings
from tui.panels.gpus import lines_wanted
from tui.panels.limit import FEWEST
from tui.panels.limit import lines_wanted as limit_lines
from tui.panels.overview import Overview, overview_rows
from tui.panels.row import MUTED
from tui.panels.state import state_rows
from tui.widgets.event_log import EventLog
from tui.widgets.gpu_panel import GpuPanel
from tui.widgets.late import Late
from tui.widgets.latency_table import LatencyTable
from tui.widgets.limit_line import LimitLine
from tui.widgets.lines import Lines
from tui.widgets.monitor_details import MonitorDetails

PADDING = 2


class MonitorPanel(Late):
    """State, overview, gauges, latencies, GPUs, what limits it, events; more beside or below where there is room.

    Sizes change only with the terminal and with what there is to say: a tick draws cells, it lays nothing out.
    """

    DEFAULT_CSS = """
    MonitorPanel { height: 1fr; layout: horizontal; }
    MonitorPanel #monitor-left { width: 1fr; height: 1fr; }
    MonitorPanel #monitor-left Lines { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._places: tuple[Places, Size] | None = None
        self._drawn: tuple[Subject, Sequence[Overview], bool] | None = None
        self._limit: tuple[object, int, int] = None, 0, FEWEST  # whose, at what width, the most lines it took

    def compose(self) -> ComposeResult:
        with Vertical(id="monitor-left"):
            yield Lines(id="monitor-state")
            yield Lines(id="monitor-overview")
            yield Lines(id="monitor-gauges")
            yield LatencyTable()
            yield Lines(id="rule-1")
            yield GpuPanel()
            yield Lines(id="rule-2")
            yield LimitLine()
            yield Lines(id="rule-3")
            yield EventLog()
        yield MonitorDetails()

    def on_resize(self) -> None:
        """It may have been given what it shows before it had any room."""
        if self._drawn is not None and self.is_up:
            self.draw(*self._drawn)

    def draw(self, subject: Subject, others: Sequence[Overview], listing: bool) -> None:
        """Show `subject`, and all servers where there is room; with `listing` nothing but them."""
        self._drawn = (subject, others, listing)
        alone = listing or subject.watched is None
        if self.size.width > PADDING and self.size.height:
            state = state_rows(subject, self._width())
            gpu = lines_wanted(subject.watched.window, subject.look.chosen_gpu) if subject.watched is not None else 1
            servers = len(others) if len(others) > 1 or listing else 0
            self._place(len(state), servers, alone, gpu, self._told(subject))
            self._fill()

    def _width(self) -> int:
        """Cells of a line of the blocks."""
        return self.size.width - side_width(self.size.width) - PADDING

    def _told(self, subject: Subject) -> int:
        """Lines of what limits it; once they were many they stay, as a block that comes and goes moves all below it."""
        watched, width = subject.watched, self._width()
        whose, at, most = self._limit
        limit = watched.limit(subject.knobs) if watched is not None and subject.limited else None
        most = max(limit_lines(limit, width), most if (whose, at) == (subject.url, width) else FEWEST)
        self._limit = subject.url, width, most
        return most

    def _place(self, state: int, servers: int, alone: bool, gpu: int, limit: int) -> None:
        """Give each block its lines. `alone`: no block of one server is shown."""
        width, height = self.size
        if alone:
            wanted = Places(state=min(state, height), overview=max(0, height - state) if servers else 0)
        else:
            wanted = places(width, height, state, gpu, servers, limit)
        if (wanted, self.size) == self._places:
            return
        self._places = wanted, self.size
        lines = {
            "#monitor-state": wanted.state,
            "#monitor-overview": wanted.overview,
            "#monitor-gauges": wanted.gauges * wanted.gauge_height,
            "LatencyTable": wanted.latencies,
            "#rule-1": 1 if wanted.rules > 0 else 0,
            "GpuPanel": wanted.gpu,
            "#rule-2": 1 if wanted.rules > 1 else 0,
            "LimitLine": wanted.limit,
            "#rule-3": 1 if wanted.rules > 2 else 0,
            "EventLog": wanted.events,
        }
        for selector, high in lines.items():
            self.query_one(selector, Lines).take_room(width - wanted.side - PADDING, high)
        self._place_details(wanted)

    def _place_details(self, wanted: Places) -> None:
        """Beside the blocks in a wide terminal, below them in a tall one, else nowhere."""
        details, left = self.query_one(MonitorDetails), self.query_one("#monitor-left")
        self.styles.layout = "horizontal" if wanted.side else "vertical"
        left.styles.width = "1fr" if wanted.side else "100%"
        left.styles.height = wanted.lines - wanted.details if wanted.details else "1fr"
        details.styles.width = wanted.side or "100%"
        details.take_room((wanted.side or self.size.width) - 1, self.size.height if wanted.side else wanted.details)

    def _fill(self) -> None:
        """Draw what was given last."""
        if self._drawn is None or self._places is None:
            return
        subject, others, _ = self._drawn
        wanted, width = self._places[0], self._width()
        self._lines("state").show(state_rows(subject, width))
        if wanted.overview:
            self._lines("overview").show(overview_rows(others, width, wanted.overview))
        watched = subject.watched
        if watched is None:
            return
        if wanted.gauges:
            drawn = history_width(width)
            rows = []
            for reading in readings(subject)[: wanted.gauges]:
                history = watched.history(reading.name, subject.end, drawn) if drawn else ()
                rows += gauge_rows(reading, history, width, wanted.gauge_height)
            self._lines("gauges").show(rows)
        for number in range(wanted.rules):
            self.query_one(f"#rule-{number + 1}", Lines).show([(("─" * width, MUTED),)])
        if wanted.latencies:
            self.query_one(LatencyTable).draw(watched.window, subject.answers)
        if wanted.gpu:
            self.query_one(GpuPanel).draw(
                watched.window,
                subject.answers,
                subject.end,
                utilization=subject.utilization,
                note=subject.gpu_note,
                chosen=subject.look.chosen_gpu,
                owners=subject.look.owners,
            )
        if wanted.limit:
            limit = watched.limit(subject.knobs) if subject.limited else None
            self.query_one(LimitLine).draw(limit, subject.limited)
        if wanted.side or wanted.details:
            self.query_one(MonitorDetails).draw(watched.window, subject.answers, subject.knobs, subject.kv_tokens)
        if wanted.events:
            self.query_one(EventLog).draw(subject.events)

    def _lines(self, name: str) -> Lines:
        return self.query_one(f"#monitor-{name}", Lines)


def is_tall(widget: Widget) -> bool:
    """Whether all servers are listed above the shown one."""
    return widget.size.height >= TALL
