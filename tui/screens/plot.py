"""A session's metric against a parameter, drawn on demand."""

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from engine.text import clean
from store.clock import utc_now
from tui.legend import Number
from tui.metric_text import metric_name, next_metric
from tui.screens.base import LlmtuneScreen
from tui.tune import plot_view
from tui.tune.tune_view import TuneView
from tui.widgets.picture import Picture

if TYPE_CHECKING:
    from store.reader import Reader


class PlotScreen(LlmtuneScreen):
    """Means over launches with their intervals; candidates that differ in other settings are series of their own."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("mark", "the mean over a candidate's launches; the line through it is its 95 % t interval"),
        Number("default", "the flag is left out: the server's own value"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric(1)", "metric", tooltip="the next metric"),
        Binding("M", "metric(-1)", show=False),
        Binding("p", "parameter", "parameter", tooltip="the next parameter on the x axis"),
        Binding("w", "workload", "workload", tooltip="the next workload"),
    ]

    DEFAULT_CSS = """
    PlotScreen #picture { height: 1fr; padding: 0 1; }
    PlotScreen #legend { height: auto; max-height: 5; padding: 0 1; color: $text-muted; }
    PlotScreen #title { height: 1; padding: 0 1; }
    """

    def __init__(self, session_id: int, workload: str = "", metric: str | None = None) -> None:
        super().__init__()
        self._session_id = session_id
        self._workload = workload
        self._metric = metric
        self._parameter = ""
        self._view: TuneView | None = None

    def compose_body(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield Picture(id="picture")
        yield Static("", id="legend", markup=False)

    def refresh_from_store(self, reader: "Reader") -> TuneView:
        """The session with its results as they stand."""
        session = reader.session(self._session_id)
        return self.app.views.read(reader, session, self.is_kept(self._session_id), utc_now())

    def show(self, snapshot: TuneView) -> None:
        """Draw only what changed: a chart costs some milliseconds."""
        if snapshot is self._view:
            return
        changed = self._view is None or self._view.result.results != snapshot.result.results
        self._view = snapshot
        if changed:
            self.redraw()

    def action_metric(self, step: int) -> None:
        """Another metric that was measured."""
        view = self._view
        if view is None:
            return
        measured = {
            name for one in view.result.results for name, each in one.summaries.items() if each.mean is not None
        }
        name = self._metric or view.result.metric.get(self._workload, "")
        for _ in range(100):
            name = next_metric(name, step)
            if name in measured:
                break
        self._metric = name
        self.redraw()

    def action_parameter(self) -> None:
        """Another parameter on the x axis."""
        if self._view is not None:
            names = plot_view.parameters(self._view)
            self._parameter = names[(names.index(self._parameter) + 1) % len(names)]
            self.redraw()

    def action_workload(self) -> None:
        """Another workload."""
        if self._view is not None and self._view.workloads:
            names = self._view.workloads
            self._workload = names[(names.index(self._workload) + 1) % len(names)]
            self.redraw()

    def redraw(self) -> None:
        view = self._view
        if view is None:
            return
        if self._workload not in view.workloads:
            self._workload = view.workloads[0] if view.workloads else ""
        names = plot_view.parameters(view)
        if self._parameter not in names:
            self._parameter = names[0]
        metric = self._metric or view.result.metric.get(self._workload, "total_tok_per_s")
        found = plot_view.plot(view, self._workload, metric, self._parameter)
        session = f'Session {self._session_id} "{clean(view.session.name, 40)}"'
        title = Text(f"{session}: {metric_name(metric)} against {found.axes.x_label}")
        self.query_one("#title", Static).update(title)
        self.query_one(Picture).draw(found.series, found.axes)
        legend = [*found.legend, *([found.note] if found.note else [])]
        self.query_one("#legend", Static).update(Text("   ".join(legend)))
