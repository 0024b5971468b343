"""A run's charts on the screen: all where there is room, else one group of them; a cursor through all panels."""

from datetime import datetime

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui import chart_stack
from tui.chart_stack import Frame, Pictures, Row
from tui.format import span
from tui.runs.run_charts import Charts, Panel

WIDE = 120  # from here on two columns of panels
GAP = 1
LEAST_ROWS, LEAST_ALL = 3, 4  # rows of a panel in a group; where all are shown at once
AXIS_ROWS = 2
NO_SAMPLES = "No sample of this time is in the store: nothing to draw."


class ChartStack(Widget):
    """Draws `Charts`. `cursor` is a moment in seconds from their zero, None while there is none; `clock` puts the time
    of day on the axis in place of the seconds since zero."""

    DEFAULT_CSS = """
    ChartStack { height: 1fr; }
    """

    class Moved(Message):
        """The mouse moved the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._charts: Charts | None = None
        self._kept: Pictures = {}
        self._group = ""
        self.cursor: float | None = None
        self.clock = False

    def show(self, charts: Charts) -> None:
        """Draw these charts; the group and the cursor stay."""
        if charts is self._charts:
            return
        self._charts = charts
        self._kept = {}
        if self._group not in charts.groups:
            self._group = next(iter(charts.groups), "")
        self.refresh()

    @property
    def group(self) -> str:
        """The group that is shown where not all are."""
        return self._group

    @property
    def shows_all(self) -> bool:
        """Whether all panels have room at once."""
        if self._charts is None:
            return True
        columns = 2 if self.size.width >= WIDE else 1
        rows = -(-len(self._charts.panels) // columns)
        return rows * LEAST_ALL + AXIS_ROWS <= self.size.height

    @property
    def step(self) -> float:
        """Seconds of one column of cells."""
        return self._frame(self._columns(self._shown())).seconds if self._charts is not None else 1.0

    def values(self) -> list[str]:
        """The value of each line at the cursor, one a line of text."""
        if self._charts is None or self.cursor is None:
            return []
        lines = [f"at {self._label(self.cursor)}  {self.time_of(self.cursor):%Y-%m-%d %H:%M:%S}"]
        for panel in self._charts.panels:
            for line in panel.lines:
                name = f"{panel.title} {line.label}".strip()
                lines.append(f"{name}: {chart_stack.figure(line, panel, self.cursor, self.step)}")
        return lines

    def next_group(self, step: int) -> None:
        """Another group of panels."""
        groups = self._charts.groups if self._charts is not None else ()
        if groups:
            at = groups.index(self._group) if self._group in groups else 0
            self._group = groups[(at + step) % len(groups)]
            self.refresh()

    def move(self, columns: int) -> None:
        """Move the cursor by so many columns; the first move puts it on the end from which it comes."""
        if self._charts is None or not self._charts.panels:
            return
        frame = self._frame(self._columns(self._shown()))
        last = frame.inner - 1
        if self.cursor is None:
            at = 0 if columns > 0 else last
        else:
            before = frame.column(self.cursor)
            at = min(max((before if before is not None else 0) + columns, 0), last)
        self.cursor = frame.moment(at)
        self.refresh()

    def put(self, moment: float | None) -> None:
        """Put the cursor on a moment, or take it away."""
        self.cursor = moment
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """The cursor to where the mouse is."""
        if self._charts is None:
            return
        frame = self._frame(self._columns(self._shown()))
        column = event.x % (frame.width + GAP) - chart_stack.MARGIN
        if 0 <= column < frame.inner:
            self.put(frame.moment(column))
            self.post_message(self.Moved())

    def turn_clock(self) -> None:
        """Seconds since zero, or the time of day."""
        self.clock = not self.clock
        self.refresh()

    def _shown(self) -> tuple[Panel, ...]:
        assert self._charts is not None
        if self.shows_all:
            return self._charts.panels
        return tuple(panel for panel in self._charts.panels if panel.group == self._group)

    def _columns(self, panels: tuple[Panel, ...]) -> list[tuple[Panel, ...]]:
        """The panels of each column; two columns where it is wide and there are enough of them."""
        if self.size.width < WIDE or len(panels) < 4:
            return [panels]
        half = -(-len(panels) // 2)
        return [panels[:half], panels[half:]]

    def _frame(self, columns: list[tuple[Panel, ...]]) -> Frame:
        assert self._charts is not None
        return Frame(self._charts.span, max(20, (self.size.width - 1) // len(columns) - GAP))

    def render(self) -> Content:
        charts = self._charts
        if charts is None:
            return Content("")
        panels = self._shown()
        if not panels:
            return Content(f" {NO_SAMPLES}")
        columns = self._columns(panels)
        frame = self._frame(columns)
        room = self.size.height - AXIS_ROWS
        fitting = max(1, room // LEAST_ROWS)
        most = min(max(map(len, columns)), fitting)
        cursor = None if self.cursor is None else frame.column(self.cursor)
        drawn: list[list[Row]] = []
        for column in columns:
            rows: list[Row] = []
            for at, panel in enumerate(column[:fitting]):
                height = max(LEAST_ROWS, room // most + (1 if at < room % most else 0))
                rows += chart_stack.panel_rows(panel, frame, height, charts.marks, cursor, self._kept)
            drawn.append([*rows, *chart_stack.axis_rows(frame, charts.marks, self._label, self._offset())])
        return chart_stack.content(chart_stack.beside(drawn, GAP))

    def _offset(self) -> float:
        """Seconds of zero after midnight, where the axis shows the time of day."""
        if not self.clock or self._charts is None:
            return 0.0
        zero = self.time_of(0.0)
        return zero.hour * 3600 + zero.minute * 60 + zero.second + zero.microsecond / 1e6

    def time_of(self, moment: float) -> datetime:
        """The time of day of a moment, here."""
        assert self._charts is not None
        return datetime.fromtimestamp(self._charts.zero + moment).astimezone()

    def _label(self, moment: float) -> str:
        assert self._charts is not None
        begin, end = self._charts.span
        if self.clock:
            form = "%d. %H:%M" if end - begin > 86400 else "%H:%M:%S" if end - begin < 3600 else "%H:%M"
            return self.time_of(moment + 0.5).strftime(form)
        return f"−{span(-moment)}" if moment < 0 else span(moment)
