"""Tune: the plan's editor while nothing runs, the session while one does."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import ContentSwitcher, DataTable

from engine.keeper.client import call
from engine.records import EngineError
from store.clock import utc_now
from store.errors import StoreError
from tui.hindrance import hindrance
from tui.legend import Number
from tui.metric_text import metric_name
from tui.palette import Command
from tui.screens.pareto import ParetoScreen
from tui.screens.plan_editing import EDIT_BINDINGS, PlanEditing
from tui.screens.serving import ServingScreen
from tui.screens.session_report import SessionReportScreen
from tui.tune.grid_text import settings_of, settings_text
from tui.tune.tune_source import TuneSnapshot, TuneSource
from tui.tune.tune_view import LIVE_STATES, TuneView, launch_name, serve_line
from tui.tune.verdict_legend import TUNE_LEGEND
from tui.widgets.ask_line import AskLine
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel
from tui.widgets.grid_editor import GridEditor
from tui.widgets.session_panel import SessionPanel
from tuning.judgement.calibration import without_calibration
from tuning.records import PlanError
from tuning.sessions import MachineChanged, start_keeper

if TYPE_CHECKING:
    from store.reader import Reader

LIVE_ACTIONS = frozenset(
    {"add", "skip", "pause", "stop", "metric", "workload", "report", "copy", "resume", "edit", "serve", "pareto"}
)
EDIT_ACTIONS = frozenset({"start", "load", "save", "calibrate"})


class TuneScreen(PlanEditing, ServingScreen):
    """`esc` leaves a field, so that the number keys change screens again; F1 to F5 change them from within a field."""

    AUTO_FOCUS = ""

    LEGEND: ClassVar[tuple[Number, ...]] = TUNE_LEGEND

    BINDINGS: ClassVar[list[BindingType]] = [
        *EDIT_BINDINGS,
        Binding("a", "add", "add", tooltip="add a candidate"),
        Binding("x", "skip", "skip", tooltip="launch the chosen candidate no more"),
        Binding("p", "pause", "pause", tooltip="pause after the run in progress, or go on"),
        Binding("S", "stop", "stop", tooltip="stop the session; what is measured stays"),
        Binding("S", "serve", "serve", tooltip="serve the winner or the chosen candidate, after one question"),
        Binding(
            "R", "resume", "resume", tooltip="a new keeper for a session whose keeper is gone, or that was stopped"
        ),
        Binding("m", "metric", "metric", tooltip="the next metric in the table"),
        Binding("M", "metric(-1)", show=False),
        Binding("w", "workload", "workload", show=False, tooltip="the next workload"),
        Binding("P", "pareto", "pareto", tooltip="throughput against latency"),
        Binding("o", "report", "open", tooltip="open the session's report"),
        Binding("e", "edit", "edit", tooltip="the editor, filled with this session's plan"),
        Binding("y", "copy", "copy", tooltip="the chosen candidate's whole command line"),
        *(
            Binding(f"f{at}", f"app.go('{mode}')", show=False, priority=True)
            for at, mode in enumerate(("servers", "monitor", "tune", "sessions", "lora"), start=1)
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._source = TuneSource(self.is_kept, self.app.views)

    def compose_body(self) -> ComposeResult:
        with ContentSwitcher(initial="live", id="switch"):
            yield SessionPanel(id="live")
            yield GridEditor(id="editor")

    def on_mount(self) -> None:
        self._chosen = self.app.open_session
        self.query_one("#switch").display = False

    # what is shown

    def refresh_from_store(self, reader: "Reader") -> TuneSnapshot:
        """The chosen session, or the one that goes on, and what the editor starts from."""
        snapshot = self._source.read(reader, self._chosen, utc_now(), self._editing)
        view = snapshot.view
        if view is None or view.session.id is None or not view.keeper_alive:
            return snapshot
        return replace(snapshot, hindrance=hindrance(self.app.data_dir, view.session.id))

    def show(self, snapshot: TuneSnapshot) -> None:
        """Fill the table, or the editor where there is no session."""
        changed, self._basis = snapshot.basis != self._basis, snapshot.basis
        if self._filled is None:
            self._fill(without_calibration(snapshot.last_plan or self._first_plan()))
        elif changed:
            self.count_anew()
        if snapshot.view is not None:
            self._chosen = snapshot.view.session.id
            if snapshot.view is not self._panel.view:
                self._panel.show(snapshot.view)
        self.show_store_error(snapshot.hindrance)
        self._switch("editor" if self._editing or snapshot.view is None else "live")

    def _switch(self, to: str) -> None:
        switch = self.query_one("#switch", ContentSwitcher)
        if switch.current != to or not switch.display:
            switch.current = to
            switch.display = True
            self.set_focus(self._panel.query_one("#first") if to == "live" else None)
            if to == "editor":
                self.count_anew()
        self.refresh_bindings()  # what the keys do follows the session's state

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what the present half of the screen can do, and only where it would do something."""
        live = self._is_live
        if action in EDIT_ACTIONS:
            return not live
        if action not in LIVE_ACTIONS:
            return True
        view = self._panel.view if live else None
        if view is None:
            return False
        goes_on = view.session.state in LIVE_STATES and view.keeper_alive
        if action in ("add", "skip", "pause", "stop"):
            return goes_on
        if action == "serve":
            return self.may_serve(view)
        if action == "resume":
            return not view.keeper_alive and view.session.state != "done"
        return action != "workload" or len(view.workloads) > 1

    @property
    def _is_live(self) -> bool:
        return self.is_mounted and self.query_one("#switch", ContentSwitcher).current == "live"

    @property
    def _panel(self) -> SessionPanel:
        return self.query_one(SessionPanel)

    @property
    def _view(self) -> TuneView | None:
        return self._panel.view

    def action_back(self) -> None:
        """From the editor back to the session."""
        if self._editing and self._view is not None:
            self._editing = False
            self._switch("live")
        else:
            super().action_back()

    def commands(self) -> tuple[Command, ...]:
        """The keys of the moment, by name."""
        return tuple(
            Command(binding.tooltip.capitalize(), f"key {binding.key}", partial(self.run_action, binding.action))
            for binding in self.BINDINGS
            if isinstance(binding, Binding) and binding.tooltip and self.check_action(binding.action, ())
        )

    # the session

    @on(DataTable.RowHighlighted)
    def _row(self) -> None:
        self._panel.show_chosen()

    def action_metric(self, step: int = 1) -> None:
        """Show another metric in the table."""
        self._panel.next_metric(step)
        if self._panel.metric is not None:
            self.say(f"the table shows {metric_name(self._panel.metric)}")

    def action_workload(self) -> None:
        """Show the next workload."""
        self._panel.next_workload()

    def action_copy(self) -> None:
        """The chosen candidate's command line, to the clipboard and shown."""
        view, chosen = self._view, self._panel.candidate
        if view is not None and view.plan is not None and chosen is not None:
            self.app.push_screen(CopyPanel(serve_line(view.plan, chosen), "command line"))

    def action_pareto(self) -> None:
        """Throughput against latency."""
        if self._chosen is not None:
            self.app.push_screen(ParetoScreen(self._chosen, self._panel.workload))

    def action_serve(self) -> None:
        """The winner, or the chosen candidate, as a server by hand."""
        self.ask_serve(self._view, self._panel.candidate)

    def action_report(self) -> None:
        """Open the report."""
        if self._chosen is not None:
            self.app.push_screen(SessionReportScreen(self._chosen))

    def action_edit(self) -> None:
        """The editor, filled with this session's plan."""
        view = self._view
        if view is not None and view.plan is not None:
            self._editing = True
            self._fill(without_calibration(view.plan))
            self._switch("editor")

    def action_add(self) -> None:
        """Ask for one more candidate; for one that did not start the field holds what would start in its place."""
        chosen = self._panel.candidate
        offers = dict(self._view.offers) if self._view is not None else {}
        offer = offers.get(chosen.index) if chosen is not None else None
        question = "Add which candidate? flag=value, several with blanks between; the rest is as in the default"
        hint = "max-num-seqs=128 gpu-memory-utilization=0.93"
        self.app.push_screen(AskLine(question, settings_text(offer) if offer else "", hint), self._add)

    def _add(self, line: str | None) -> None:
        if line is None:
            return
        try:
            settings = settings_of(line)
        except PlanError as error:
            self.say(str(error), error=True)
            return
        self._command("add", "the candidate is launched at the end of this block", settings=settings)

    def action_skip(self) -> None:
        """Launch the chosen candidate no more, after a question."""
        view, chosen = self._view, self._panel.candidate
        if view is None or chosen is None:
            return
        if chosen.index == 0:
            self.say("the default stays: everything is compared with it", error=True)
            return
        name = launch_name(view, chosen.index)
        question = f"Leave {name} out from now on? What is measured of it stays."
        self._confirm(question, "leave it out", "skip", f"{name} is left out", candidate=chosen.index)

    def action_pause(self) -> None:
        """Pause after the run in progress, or go on."""
        paused = self._view is not None and self._view.session.state == "paused"
        if paused:
            self._command("resume", "it goes on")
        else:
            self._command("pause", "it pauses after the run in progress; p goes on")

    def action_stop(self) -> None:
        """Stop the session, after a question."""
        question = f"Stop session {self._chosen}? What is measured stays; the run in progress is lost."
        self._confirm(question, "stop it", "stop", "it stops; R goes on later")

    def _confirm(self, question: str, deed: str, command: str, said: str, **arguments: Any) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._command(command, said, **arguments)

        self.app.push_screen(Confirm(question, deed), answered)

    def action_resume(self) -> None:
        """A new keeper, which begins at the first run without a result."""
        if self._chosen is not None:
            self._revive(self._chosen)

    def _ask_about_changes(self, session_id: int, differences: list[str]) -> None:
        """Numbers of two machines are mixed only where a person says so."""

        def answered(yes: bool | None) -> None:
            if yes:
                self._revive(session_id, accept_changes=True)

        question = f"Session {session_id} was measured on another machine. {'; '.join(differences)}."
        self.app.push_screen(Confirm(question, "go on and mix the numbers"), answered)

    @work(thread=True, group="keeper", description="asks the session's keeper")
    def _command(self, command: str, said: str, **arguments: Any) -> None:
        if self._chosen is None:
            return
        try:
            call(self.app.data_dir, "session", self._chosen, command, **arguments)
        except (EngineError, OSError) as error:
            self.later(self.say, str(error), True)
            return
        self.later(self.say, said)
        self.later(self.app.ask)

    @work(thread=True, group="keeper", description="starts a keeper again")
    def _revive(self, session_id: int, accept_changes: bool = False) -> None:
        try:
            start_keeper(self.app.data_dir, session_id, accept_changes=accept_changes)
        except MachineChanged as error:
            self.later(self._ask_about_changes, session_id, error.differences)
            return
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
            return
        self.later(self.say, f"session {session_id} goes on from its first run without a result")
        self.later(self.app.ask)
