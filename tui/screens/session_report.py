"""One session as a report: its tables, environment, points left out, events."""

from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import DataTable, Static

from engine.text import clean
from store.clock import utc_now
from tui.format import local_clock, local_minute
from tui.plan_form import value_text
from tui.screens.base import Number
from tui.screens.exporting import ExportingScreen
from tui.screens.plot import PlotScreen
from tui.screens.run_list import RunListScreen
from tui.tune_view import TuneView, serve_line
from tui.widgets.copy import CopyPanel
from tui.widgets.session_panel import SessionPanel

if TYPE_CHECKING:
    from store.reader import Reader


def details(view: TuneView) -> str:
    """When it was, environment, what was left out, and the newest events first."""
    session = view.session
    ended = f", ended {local_minute(session.finished_at)}" if session.finished_at else ""
    lines = [f"begun {local_minute(session.started_at or session.created_at)}{ended}", "", "environment"]
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


class SessionReportScreen(ExportingScreen):
    """Opened from the list or from Tune; it goes on filling while the session runs."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("n", "launches measured; the runs on one launch are averaged"),
        Number("vs default", "candidate against default within its blocks, with its 95 % interval"),
        Number("tab", "goes to the lines below the table, which the arrows scroll"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("w", "workload", "workload", tooltip="the next workload"),
        Binding("m", "metric", "metric", tooltip="the next metric in the table"),
        Binding("M", "metric(-1)", show=False),
        Binding("r", "runs", "runs", tooltip="every run of the session; enter opens one as charts"),
        Binding("g", "plot", "plot", tooltip="plot a metric against a parameter"),
        Binding("e", "export", "export", tooltip="write CSV, JSON or Markdown to the exports folder"),
        Binding("y", "copy", "copy", tooltip="the chosen candidate's whole command line"),
    ]

    DEFAULT_CSS = """
    SessionReportScreen SessionPanel { height: auto; max-height: 65%; }
    SessionReportScreen SessionPanel ResultsTable { max-height: 12; }
    SessionReportScreen SessionPanel #progress, SessionReportScreen SessionPanel #below { display: none; }
    SessionReportScreen #details { height: 1fr; padding: 0 1; border-top: solid $panel; scrollbar-size-vertical: 1; }
    SessionReportScreen #details:focus { border-top: solid $accent; }
    SessionReportScreen #details Static { height: auto; }
    """

    def __init__(self, session_id: int) -> None:
        super().__init__()
        self._session_id = session_id

    def compose_body(self) -> ComposeResult:
        yield SessionPanel(id="panel")
        with VerticalScroll(id="details"):
            yield Static("", markup=False)

    def refresh_from_store(self, reader: "Reader") -> TuneView:
        """The session with its results as they stand."""
        session = reader.session(self._session_id)
        return self.app.views.read(reader, session, self.is_kept(self._session_id), utc_now())

    def show(self, snapshot: TuneView) -> None:
        """Tables above, the rest below."""
        if snapshot is self.query_one(SessionPanel).view:
            return
        self.query_one(SessionPanel).show(snapshot)
        self.query_one("#details Static", Static).update(Content(details(snapshot)))

    @on(DataTable.RowHighlighted)
    def _row(self) -> None:
        self.query_one(SessionPanel).show_chosen()

    def action_workload(self) -> None:
        """The next workload."""
        self.query_one(SessionPanel).next_workload()

    def action_metric(self, step: int = 1) -> None:
        """Another metric in the table."""
        self.query_one(SessionPanel).next_metric(step)

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
