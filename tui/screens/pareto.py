"""What a session measured as throughput against latency: which configurations are not beaten in both."""

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from store.clock import utc_now
from tui.legend import Number
from tui.screens.base import LlmtuneScreen
from tui.tune import pareto_view
from tui.tune.tune_view import TuneView
from tui.widgets.picture import Picture

if TYPE_CHECKING:
    from store.reader import Reader

NOTHING = "nothing to draw: no throughput with a latency was measured yet"


class ParetoScreen(LlmtuneScreen):
    """Each configuration is a letter of the chart, and a line below it."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("A B C", "a configuration each; A is the default, the lines below the chart say which"),
        Number("●", "on the front: no other is as good in both and better in one, by the means over launches"),
        Number("○", "behind it; of two that noise cannot tell apart one may stand on the front, one behind it"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("m", "throughput", "throughput", tooltip="the next throughput"),
        Binding("l", "latency", "latency", tooltip="the next latency"),
        Binding("w", "workload", "workload", tooltip="the next workload"),
    ]

    DEFAULT_CSS = """
    ParetoScreen #title { height: 1; padding: 0 1; }
    ParetoScreen #picture { height: 1fr; min-height: 8; padding: 0 1; }
    ParetoScreen #points { height: auto; max-height: 40%; padding: 0 1; scrollbar-size-vertical: 1; }
    ParetoScreen #points Static { height: auto; }
    """

    def __init__(self, session_id: int, workload: str = "") -> None:
        super().__init__()
        self._session_id = session_id
        self._workload = workload
        self._steps = {"throughput": 0, "latency": 0}
        self._view: TuneView | None = None

    def compose_body(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield Picture(id="picture")
        with VerticalScroll(id="points"):
            yield Static("", markup=False)

    def on_mount(self) -> None:
        self.query_one("#points").focus()

    def refresh_from_store(self, reader: "Reader") -> TuneView:
        """The session with its results as they stand."""
        session = reader.session(self._session_id)
        return self.app.views.read(reader, session, self.is_kept(self._session_id), utc_now())

    def show(self, snapshot: TuneView) -> None:
        """Draw only what changed: a chart costs some milliseconds."""
        changed = self._view is None or self._view.result.results != snapshot.result.results
        self._view = snapshot
        if changed:
            self.redraw()

    def action_throughput(self) -> None:
        """The next throughput."""
        self._steps["throughput"] += 1
        self.redraw()

    def action_latency(self) -> None:
        """The next latency."""
        self._steps["latency"] += 1
        self.redraw()

    def action_workload(self) -> None:
        """The next workload."""
        names = self._view.workloads if self._view is not None else ()
        if names:
            at = names.index(self._workload) if self._workload in names else -1
            self._workload = names[(at + 1) % len(names)]
            self.redraw()

    def redraw(self) -> None:
        view, picture = self._view, self.query_one(Picture)
        if view is None:
            return
        if self._workload not in view.workloads:
            self._workload = view.workloads[0] if view.workloads else ""
        title = f'Session {self._session_id} "{clean(view.session.name, 40)}": throughput against latency'
        self.query_one("#title", Static).update(Content(title))
        fast, slow = (of(view, self._workload) for of in (pareto_view.throughputs, pareto_view.latencies))
        if not fast or not slow:
            picture.say(NOTHING)
            return
        throughput = fast[self._steps["throughput"] % len(fast)]
        latency = slow[self._steps["latency"] % len(slow)]
        found = pareto_view.pareto_plot(view, self._workload, throughput, latency)
        self.query_one("#points Static", Static).update(Content("\n".join(found.lines)))
        picture.draw(found.series, found.axes)
