"""The half of the Tune screen that makes a plan: fill the form, count what it costs, start it, open and save files."""

import os
from pathlib import Path

from textual import on, work
from textual.binding import Binding
from textual.worker import get_current_worker

from engine.launch.installation import find_vllm
from engine.records import EngineError
from engine.text import clean
from store.errors import StoreError
from store.private_files import write_new_private
from tui.checkout import MODEL, VLLM, of_checkout
from tui.metric_text import money
from tui.screens.base import LlmtuneScreen
from tui.tune import plan_preview
from tui.tune.plan_form import PlanForm, form_of
from tui.tune.plan_preview import Basis, Preview
from tui.widgets.ask_line import AskLine
from tui.widgets.confirm import Confirm
from tui.widgets.grid_editor import GridEditor
from tuning.figures import duration_text
from tuning.judgement import certainty
from tuning.judgement.calibration import calibration
from tuning.plans.demo import demo_plan
from tuning.plans.plan_file import load_plan, plan_toml
from tuning.records import Plan, PlanError
from tuning.sessions import create_session, start_keeper
from tuning.verdict.outlook import Price

EDIT_BINDINGS = (
    Binding("ctrl+s,S", "start", "start", key_display="^s", tooltip="start the session, after one question"),
    Binding("ctrl+o", "load", "open plan", tooltip="fill the form from a plan file"),
    Binding("ctrl+t", "save", "save plan", tooltip="write the form as a plan file"),
    Binding("C", "calibrate", "calibrate", tooltip="measure the default against itself, for this machine's noise"),
)


class PlanEditing(LlmtuneScreen):
    """What a screen with a GridEditor does; the subclass shows the editor, and the session once there is one."""

    def __init__(self) -> None:
        super().__init__()
        self._chosen: int | None = None  # the session that is shown
        self._editing = False  # the form stays in front although there is a session
        self._filled: PlanForm | None = None
        self._base: Plan | None = None
        self._basis = Basis()
        self._preview = Preview()

    def _first_plan(self) -> Plan:
        gpu = Path("/dev/nvidiactl").exists()
        return demo_plan(of_checkout(MODEL) or "", self.app.vllm or of_checkout(VLLM), gpu=gpu)

    def _fill(self, plan: Plan) -> None:
        self._base = plan
        self._filled = form_of(plan)
        self.query_one(GridEditor).fill(self._filled)

    @on(GridEditor.Edited)
    def _edited(self, message: GridEditor.Edited) -> None:
        if message.form != self._filled and self.query_one(GridEditor).display:
            self._editing = True  # a session that begins elsewhere does not take the form away
        self.count_anew()

    def count_anew(self) -> None:
        """The form is another, or times and noise are known better, or it is shown now; hidden, it costs nothing."""
        editor = self.query_one(GridEditor)
        if self._base is not None and editor.display:
            self._count(editor.form, self._base, self._basis)

    @work(thread=True, exclusive=True, group="preview", description="counts what the plan costs")
    def _count(self, form: PlanForm, base: Plan, basis: Basis) -> None:
        worker = get_current_worker()
        found = plan_preview.preview(form, base, basis)
        if worker.is_cancelled:
            return
        self.later(self._counted, found)
        plan, noise = found.plan, found.noise
        if plan is None or noise is None:
            return
        shown: dict[int, Price | None] = dict.fromkeys(certainty.choices(plan.decide.blocks))
        if not any(one.index for one in found.candidates):
            shown = {}
        self.later(self._priced, found, dict(shown))
        for one in certainty.prices(
            plan, found.candidates, noise, found.seconds_of_launch, tuple(shown), lambda: not worker.is_cancelled
        ):
            shown[one.blocks] = one
            self.later(self._priced, found, dict(shown))

    def _counted(self, found: Preview) -> None:
        self._preview = found
        self.query_one(GridEditor).show_preview(found)

    def _priced(self, found: Preview, prices: dict[int, Price | None]) -> None:
        """A price is shown of what stands in the form; another may have been counted since."""
        if found is self._preview:
            self.query_one(GridEditor).show_prices(prices)

    def action_start(self) -> None:
        """Ask once, with what it will cost, and start."""
        form = self.query_one(GridEditor).form
        if self._base is None:
            return
        found = self._preview = plan_preview.preview(form, self._base, self._basis)
        self.query_one(GridEditor).show_preview(found)
        plan, cost = found.plan, found.estimate
        if plan is None or cost is None:
            self.say(found.mistakes[0] if found.mistakes else "there is no plan yet", error=True)
            return
        price = f", {money(cost.money)}" if cost.money is not None else ""
        question = (
            f'Start "{clean(plan.name, 30)}": at most {cost.launches} launches, {cost.runs} runs, '
            f"about {duration_text(3600 * cost.hours)}{price} (time: {cost.basis})?"
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._begin(plan, found.toml)

        self.app.push_screen(Confirm(question, "start it"), answered)

    def action_calibrate(self) -> None:
        """Ask once, with what it will cost, and measure the default against itself."""
        form = self.query_one(GridEditor).form
        if self._base is None:
            return
        found = plan_preview.preview(form, self._base, self._basis)
        if found.plan is None:
            self.say(found.mistakes[0] if found.mistakes else "there is no plan yet", error=True)
            return
        plan = calibration(found.plan)
        launches, seconds, price = plan_preview.calibration_cost(found)
        question = (
            f"Measure the default against itself: {launches} launches, about {duration_text(seconds)}{price}? "
            "Its noise then says what each number of blocks finds, and helps where candidates are few."
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._begin(plan, plan_toml(plan))

        self.app.push_screen(Confirm(question, "start it"), answered)

    @work(thread=True, group="begin", description="starts the session")
    def _begin(self, plan: Plan, toml: str) -> None:
        session_id: int | None = None
        try:
            installation = find_vllm(plan.vllm or self.app.vllm, os.environ)
            session_id = create_session(self.app.data_dir, plan, toml, installation)
            start_keeper(self.app.data_dir, session_id, plan.server_env)
        except (EngineError, StoreError, OSError) as error:
            self.later(self._begun, session_id, f"it did not start: {error}")
        else:
            self.later(self._begun, session_id, None)

    def _begun(self, session_id: int | None, mistake: str | None) -> None:
        """Show the session; also one whose keeper did not start, which `R` can start again."""
        if mistake is not None:
            self.say(mistake, error=True)
        else:
            self.say(f"session {session_id} starts; it goes on when this program is left")
        if session_id is not None:
            self._chosen, self._editing = session_id, False
            self._filled = self.query_one(GridEditor).form
            self.app.ask()

    def action_load(self) -> None:
        """Fill the form from a plan file."""
        self.app.push_screen(AskLine("Open which plan file?", hint="plan.toml"), self.open_plan)

    def open_plan(self, path: str | None) -> None:
        """Fill the form from the file, or say what is wrong with it; None where none was named."""
        if path is None:
            return
        try:
            plan = load_plan(Path(path).expanduser())
        except (PlanError, OSError) as error:
            self.say(str(error), error=True)
            return
        self._fill(plan)
        self._editing = True
        self.say(f"{path} fills the form")

    def action_save(self) -> None:
        """Write the form as a plan file, if it is a plan."""
        if self._preview.plan is None:
            self.say("what stands in the form is no plan yet: see the lines below it", error=True)
            return
        name = "".join(char if char.isalnum() or char in "-_" else "-" for char in self._preview.plan.name)
        self.app.push_screen(AskLine("Save the plan where?", f"{name}.toml"), self._save)

    def _save(self, path: str | None) -> None:
        if path is None:
            return
        target = Path(path).expanduser()
        try:
            write_new_private(target, self._preview.toml)  # its [server.env] may hold a token
        except FileExistsError:
            self.say(f"{target} exists already; give another name", error=True)
        except OSError as error:
            self.say(f"{target} cannot be written: {error.strerror}", error=True)
        else:
            self.say(f"saved: {target.resolve()}; llmtune sweep {target} starts it without a screen")
