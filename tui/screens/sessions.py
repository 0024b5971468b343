"""Sessions: everything that was measured here."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from store.errors import StoreError
from tui.legend import Number
from tui.palette import Command
from tui.screens.exporting import ExportingScreen
from tui.screens.filtering import FilteringScreen
from tui.screens.plot import PlotScreen
from tui.screens.session_report import SessionReportScreen
from tui.sessions import session_files
from tui.sessions.sessions_view import TITLES, SessionLine, SessionsSnapshot, SessionsSource, matching
from tui.tune.tune_view import TuneView
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel
from tui.widgets.line_list import LineList, in_columns
from tui.widgets.session_panel import SessionPanel

if TYPE_CHECKING:
    from store.reader import Reader

WIDTHS = (5, 17, 14, 6, 9, 12)  # each with one blank before it; the last column has what is left
RIGHT = frozenset({0, 3, 4})
WIDE_FROM = 110
"""Cells from which a line has candidates and runs; else the outcome has their room."""
NARROW, NARROW_WIDTHS = (0, 1, 2, 5, 6), (5, 14, 14, 12)
NOTHING = "Nothing was measured here yet. 3 opens the editor of a plan; `llmtune demo` shows one."
MARK = "◆"


def laid(cells: Sequence[str], width: int) -> str:
    """The cells of a line in their columns, as many as there is room for."""
    if width >= WIDE_FROM:
        return in_columns(cells, WIDTHS, RIGHT, width, gap=1)
    return in_columns([cells[at] for at in NARROW], NARROW_WIDTHS, RIGHT, width, gap=1)


class SessionTable(LineList):
    """The list, one line a session."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[SessionLine] = ()
        self._marked: list[int] = []

    def show(self, lines: Sequence[SessionLine]) -> None:
        """Show these sessions; the cursor stays on its session."""
        self._lines = lines
        self.lay([line.id for line in lines])

    @property
    def marked(self) -> tuple[int, ...]:
        """The sessions to be compared, at most two, also where the filter hides them."""
        return tuple(self._marked)

    def mark(self) -> bool:
        """Mark the session under the cursor, or take its mark away; False where two others are marked."""
        line = self.chosen
        if line is None:
            return True
        if line.id in self._marked:
            self._marked.remove(line.id)
        elif len(self._marked) == 2:
            return False
        else:
            self._marked.append(line.id)
        self.refresh()
        return True

    def forget(self, ids: Collection[int]) -> None:
        """Take the marks of other sessions than these away: they were deleted."""
        self._marked = [id for id in self._marked if id in ids]

    @property
    def chosen(self) -> SessionLine | None:
        """The session under the cursor."""
        return self._lines[self.at] if self.at < len(self._lines) else None

    def line(self, at: int, width: int) -> str:
        text = laid(self._lines[at].cells, width)
        return MARK + text[1:] if self._lines[at].id in self._marked else text


class SessionsScreen(FilteringScreen, ExportingScreen):
    """A list; `enter` opens a session's report."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number(MARK, "marked; c compares two marked ones, or the marked one with the one under the cursor"),
        Number("cand.", "candidates beside the default"),
        Number("runs", "measured runs made, of those the plan comes to if every candidate stays to the end"),
        Number("begun", "month-day and time of day, here"),
        Number("outcome", "the verdict in one sentence, whole below the list; without one what failed or was rejected"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="open the chosen session's report"),
        Binding(
            "slash", "filter", "filter", key_display="/", tooltip="show only sessions with these words; esc shows all"
        ),
        Binding("space", "mark", "mark", tooltip="mark the session, or take its mark away; two marked are compared"),
        Binding("c", "compare", "compare", tooltip="compare the two marked sessions, or the marked one with this"),
        Binding("g", "plot", "plot", tooltip="plot a metric against a parameter"),
        Binding("e", "export", "export", tooltip="write HTML, Markdown, JSON or CSV to the exports folder"),
        Binding("i", "imports", "imports", tooltip="results measured elsewhere, that `llmtune import` has read"),
        # Not in the last line, which has 80 cells.
        Binding("d", "delete", "delete", show=False, tooltip="delete the session, after one question"),
        Binding("y", "copy", "copy", show=False, tooltip="the command that prints the session's report"),
    ]

    DEFAULT_CSS = """
    SessionsScreen #heads { height: 1; color: $text-muted; }
    SessionsScreen #none { padding: 1; display: none; }
    SessionsScreen SessionPanel { display: none; height: auto; max-height: 60%; border-top: solid $panel; }
    SessionsScreen.-tall SessionPanel { display: block; }
    SessionsScreen SessionPanel.-none { display: none; }
    SessionsScreen SessionPanel #progress, SessionsScreen SessionPanel #below { display: none; }
    SessionsScreen #said { height: auto; max-height: 3; padding: 0 1; color: $text-muted; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._source = SessionsSource(self.is_kept, self.app.views)
        self._lines: tuple[SessionLine, ...] = ()
        self._chosen: int | None = None
        self._drawn: SessionsSnapshot | None = None

    def compose_body(self) -> ComposeResult:
        yield self.filter_line("name, model, state")
        yield Static("", id="heads", markup=False)
        yield SessionTable(id="list")
        yield Static(NOTHING, id="none", markup=False)
        yield Static("", id="said", markup=False)
        yield SessionPanel(id="chosen")

    def on_mount(self) -> None:
        self.query_one(SessionTable).focus()

    @property
    def filtered_list(self) -> SessionTable:
        return self.query_one(SessionTable)

    # what is shown

    def refresh_from_store(self, reader: "Reader") -> SessionsSnapshot:
        """The list, and what came of the chosen session."""
        return self._source.read(reader, self._chosen)

    def show(self, snapshot: SessionsSnapshot) -> None:
        """Change what changed; a new session comes first and so the list is laid anew."""
        if snapshot is self._drawn:
            return
        self._drawn = snapshot
        self._lines = snapshot.lines
        self.query_one(SessionTable).forget({line.id for line in snapshot.lines})
        self.fill()
        if snapshot.chosen == self._chosen:
            self.query_one("#said", Static).update(Content(snapshot.said))
            self._show_chosen(snapshot.view)

    def _show_chosen(self, view: TuneView | None) -> None:
        panel = self.query_one(SessionPanel)
        panel.set_class(view is None, "-none")
        if view is not None and panel.display:
            panel.show(view)

    def redraw(self) -> None:
        self.query_one("#heads", Static).update(Content(laid(TITLES, self.size.width)))

    def fill(self) -> None:
        table = self.query_one(SessionTable)
        table.show(matching(self._lines, self.filter_words))
        self.query_one("#none").display = not self._lines
        self.query_one("#heads").display = table.display = bool(self._lines)
        self._choose()

    @on(SessionTable.Chosen)
    def _choose(self) -> None:
        """Read what came of the session under the cursor, where it is another."""
        line = self.query_one(SessionTable).chosen
        chosen = line.id if line is not None else None
        if chosen != self._chosen:
            self._chosen, self._drawn = chosen, None
            self.query_one("#said", Static).update("")
            self.app.ask()

    @property
    def _line(self) -> SessionLine | None:
        return self.query_one(SessionTable).chosen

    def commands(self) -> tuple[Command, ...]:
        """What can be done with the chosen session."""
        if self._line is None:
            return ()
        return (
            Command("Open the report", "Tables, environment, events", self.action_open),
            Command("Mark", "For a comparison of two sessions", self.action_mark),
            Command("Compare", "The two marked sessions", self.action_compare),
            Command("Plot", "A metric against a parameter", self.action_plot),
            Command("Export", "HTML, Markdown, JSON or CSV", self.action_export),
            Command("Delete the session", "Asks once", self.action_delete),
        )

    # keys

    @on(SessionTable.Opened)
    def action_open(self) -> None:
        """The report of the chosen session."""
        if self._chosen is not None:
            self.app.push_screen(SessionReportScreen(self._chosen))

    def action_mark(self) -> None:
        """Mark the chosen session for a comparison, or take its mark away."""
        if not self.query_one(SessionTable).mark():
            self.say("two sessions are marked: c compares them, space on one of them takes its mark away", error=True)

    def action_compare(self) -> None:
        """Hold the two marked sessions, or the marked and the chosen one, against each other; the older one is A."""
        pair = set(self.query_one(SessionTable).marked)
        if len(pair) == 1 and self._chosen is not None:
            pair.add(self._chosen)
        if len(pair) != 2:
            self.say("mark two sessions with space, or one and go to the other; then c compares them", error=True)
            return
        from tui.screens.compare import CompareScreen  # as below: the list opens sooner without

        self.app.push_screen(CompareScreen(*sorted(pair)))

    def action_imports(self) -> None:
        """What was measured elsewhere."""
        from tui.screens.imports import ImportsScreen

        self.app.push_screen(ImportsScreen())

    def action_plot(self) -> None:
        """Draw the chosen session."""
        if self._chosen is not None:
            self.app.push_screen(PlotScreen(self._chosen))

    def action_copy(self) -> None:
        """The command that prints the report."""
        if self._chosen is not None:
            words = f"llmtune report {self._chosen} --data-dir {self.app.data_dir}"
            self.app.push_screen(CopyPanel(words, "command line"))

    def action_export(self) -> None:
        """Ask for the format, and write the file."""
        if self._chosen is not None:
            self.ask_export(self._chosen)

    def action_delete(self) -> None:
        """Delete the chosen session, after a question."""
        line = self._line
        if line is None:
            return
        if line.state == "running" and self.is_kept(line.id):
            self.say(f"session {line.id} is running: stop it first (3, then S)", error=True)
            return
        question = f'Delete session {line.id} "{line.name}" ({line.cells[4]} runs)? Its results are gone for good.'

        def answered(yes: bool | None) -> None:
            if yes:
                self._delete(line.id)

        self.app.push_screen(Confirm(question, "delete it"), answered)

    @work(thread=True, group="delete", description="deletes a session")
    def _delete(self, session_id: int) -> None:
        try:
            session_files.delete(self.app.data_dir, session_id)
        except StoreError as error:
            self.later(self.say, str(error), True)
            return
        self.later(self.say, f"session {session_id} is deleted")
        self.later(self.app.ask)
