"""One session as a report: the verdict, its tables, cost, noise, what was lost, definitions, environment, events."""

from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import DataTable, Static

from engine.text import clean
from store.clock import utc_now
from tui.document_text import document_content
from tui.format import local_clock, local_minute
from tui.legend import Number
from tui.screens.exporting import ExportingScreen
from tui.screens.pareto import ParetoScreen
from tui.screens.plot import PlotScreen
from tui.screens.run_list import RunListScreen
from tui.screens.serving import ServingScreen
from tui.sessions.report_source import ReportSnapshot, ReportSource
from tui.tune.grid_text import value_text
from tui.tune.tune_lines import failure_lines
from tui.tune.tune_view import TuneView, serve_line
from tui.tune.verdict_cells import note_lines
from tui.tune.verdict_legend import VERDICT_LEGEND
from tui.widgets.copy import CopyPanel
from tui.widgets.session_panel import SessionPanel

if TYPE_CHECKING:
    from store.reader import Reader


MARGIN = 3  # cells beside the details: padding and scrollbar


def before_relying(view: TuneView) -> str:
    """When it was, what did not start or was rejected, and what else must be known beside the verdict."""
    session = view.session
    ended = f", ended {local_minute(session.finished_at)}" if session.finished_at else ""
    lines = [f"begun {local_minute(session.started_at or session.created_at)}{ended}"]
    return "\n".join([*lines, *failure_lines(view), *note_lines(view)])


def surroundings(view: TuneView) -> str:
    """Environment, what was left out, and the newest events first."""
    lines = ["environment"]
    lines += [f"  {name}: {text}" for name, text in _flat(view.session.environment)] or ["  not recorded"]
    left = view.session.raw.get("left_out")
    if isinstance(left, list) and left:
        lines += ["", "left out before any launch"]
        lines += [
            f"  {clean(value_text(point.get('settings')), 80)}: {clean(str(point.get('reason')), 120)}"
            for point in left
        ]
    lines += ["", "events, the newest first"]
    lines += [f"  {local_clock(one.at)}  {clean(one.text, 300)}" for one in reversed(view.events)] or ["  none"]
    return "\n".join(lines)


def _flat(found: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for key, value in found.items():
        name = f"{before}{clean(str(key), 40)}"
        if isinstance(value, dict):
            pairs += _flat(value, f"{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            pairs += _flat({str(at): item for at, item in enumerate(value)}, f"{name}.")
        elif value == []:
            pairs.append((name, "none"))
        else:
            shown = round(value, 1) if isinstance(value, float) else value
            pairs.append((name, "–" if shown is None else clean(value_text(shown), 200)))
    return pairs


def details(found: ReportSnapshot, width: int) -> Content:
    """All that stands below the tables."""
    head = Content(before_relying(found.view))
    parts = document_content(found.parts, width) if found.parts else Content("" if found.parts == () else "reading …")
    return Content("\n\n").join([head, *([parts] if parts.plain else []), Content(surroundings(found.view))])


class SessionReportScreen(ExportingScreen, ServingScreen):
    """Opened from the list or from Tune; it goes on filling while the session runs."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        *VERDICT_LEGEND,
        Number("tab", "goes to the lines below the table, which the arrows scroll"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("w", "workload", "workload", show=False, tooltip="the next workload"),
        Binding("m", "metric", "metric", tooltip="the next metric in the table"),
        Binding("M", "metric(-1)", show=False),
        Binding("r", "runs", "runs", tooltip="every run of the session; enter opens one as charts"),
        Binding("g", "plot", "plot", tooltip="plot a metric against a parameter"),
        Binding("P", "pareto", "pareto", tooltip="throughput against latency"),
        Binding("e", "export", "export", tooltip="write HTML, Markdown, JSON or CSV to the exports folder"),
        Binding("S", "serve", "serve", tooltip="serve the winner or the chosen candidate, after one question"),
        Binding("y", "copy", "copy", show=False, tooltip="the chosen candidate's whole command line"),
    ]

    DEFAULT_CSS = """
    SessionReportScreen SessionPanel { height: auto; max-height: 75%; }
    SessionReportScreen SessionPanel ResultsTable { max-height: 6; }
    SessionReportScreen.-tall SessionPanel ResultsTable { max-height: 12; }
    SessionReportScreen.-short SessionPanel #command { display: none; }
    SessionReportScreen SessionPanel #progress, SessionReportScreen SessionPanel #below { display: none; }
    SessionReportScreen SessionPanel #why { display: none; }
    SessionReportScreen #details { height: 1fr; padding: 0 1; border-top: solid $panel; scrollbar-size-vertical: 1; }
    SessionReportScreen #details:focus { border-top: solid $accent; }
    SessionReportScreen #details Static { height: auto; }
    """

    def __init__(self, session_id: int) -> None:
        super().__init__()
        self._session_id = session_id
        self._source = ReportSource(self.app.views)
        self._found: ReportSnapshot | None = None

    def compose_body(self) -> ComposeResult:
        yield SessionPanel(id="panel")
        with VerticalScroll(id="details"):
            yield Static("", markup=False)

    def refresh_from_store(self, reader: "Reader") -> ReportSnapshot:
        """The session with its results as they stand."""
        return self._source.read(reader, reader.session(self._session_id), self.is_kept(self._session_id), utc_now())

    def show(self, snapshot: ReportSnapshot) -> None:
        """Tables above, the rest below."""
        if snapshot is self._found:
            return
        first, self._found = self._found is None, snapshot
        if snapshot.view is not self.query_one(SessionPanel).view:
            self.query_one(SessionPanel).show(snapshot.view)
            self.refresh_bindings()  # it may be over now
        self.redraw()
        if first:
            self.app.ask()  # what comes with the second look

    def redraw(self) -> None:
        if self._found is not None:
            self.query_one("#details Static", Static).update(details(self._found, self.size.width - MARGIN))

    @on(DataTable.RowHighlighted)
    def _row(self) -> None:
        self.query_one(SessionPanel).show_chosen()

    def action_workload(self) -> None:
        """The next workload."""
        self.query_one(SessionPanel).next_workload()

    def action_metric(self, step: int = 1) -> None:
        """Another metric in the table."""
        self.query_one(SessionPanel).next_metric(step)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is served while the session goes on."""
        return action != "serve" or (self.is_mounted and self.may_serve(self.query_one(SessionPanel).view))

    def action_serve(self) -> None:
        """The winner, or the chosen candidate, as a server by hand."""
        panel = self.query_one(SessionPanel)
        self.ask_serve(panel.view, panel.candidate)

    def action_pareto(self) -> None:
        """Throughput against latency."""
        self.app.push_screen(ParetoScreen(self._session_id, self.query_one(SessionPanel).workload))

    def action_plot(self) -> None:
        """Draw what the table shows."""
        panel = self.query_one(SessionPanel)
        self.app.push_screen(PlotScreen(self._session_id, panel.workload, panel.metric))

    def action_runs(self) -> None:
        """The list of its runs."""
        self.app.push_screen(RunListScreen(self._session_id))

    def action_copy(self) -> None:
        """The chosen candidate's command line, to the clipboard and shown."""
        panel = self.query_one(SessionPanel)
        if panel.view is not None and panel.view.plan is not None and panel.candidate is not None:
            words = serve_line(panel.view.plan, panel.candidate)
            self.app.push_screen(CopyPanel(words, "command line"))

    def action_export(self) -> None:
        """Ask for the format, and write the file."""
        self.ask_export(self._session_id)
