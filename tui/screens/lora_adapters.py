"""What can be done with an adapter: serve, load into a server that runs, evaluate, tune with it, roll back."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.content import Content
from textual.widgets import Static

from engine.records import EngineError
from engine.text import clean
from store.errors import StoreError
from store.records import AdapterRecord, ServerRecord
from tui import errands
from tui.errands import Errand
from tui.format import span
from tui.lora import deeds as lora_deeds
from tui.lora.lines import size_text
from tui.lora.source import LoraSnapshot
from tui.screens.base import LlmtuneScreen
from tui.widgets.ask_line import AskLine
from tui.widgets.choose import Choose
from tui.widgets.confirm import Confirm

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_S = 0.5
SERVE_FLAGS = {True: "--gpu-memory-utilization 0.9", False: "--gpu-memory-utilization 0.5"}
"""What the line begins with, on a GPU and without: there it is a share of all main memory, which others use, too."""


class AdapterActions(LlmtuneScreen):
    """Each is a command of ours that goes on when this program is left. The subclass composes `errand_line`."""

    def __init__(self) -> None:
        super().__init__()
        self._errands: list[tuple[Errand, Callable[[Errand], None]]] = []

    def errand_line(self) -> Static:
        """Where what is under way is told."""
        return Static("", id="errands", markup=False)

    def on_mount(self) -> None:
        self.query_one("#errands").display = False
        self.set_interval(LOOK_S, self._look)

    def ask_adapter(self, adapter: AdapterRecord, snapshot: LoraSnapshot) -> None:
        """One key for what is to be done with it."""
        beside = base_servers(adapter, snapshot.servers)
        others = [one for one in snapshot.adapters if one.name == adapter.name and one.version != adapter.version]
        choices = {"s": "serve it: a server of its own, by hand"}
        if beside:
            choices["l"] = f"load it into {clean(beside[0].name, 30)} on port {beside[0].port}"
        choices["e"] = "evaluate: losses and answers against its base"
        choices["t"] = "tune with it: measure what serving it costs"
        if others:
            choices["b"] = "roll back: this version where another is served"
        choices["v"] = "view: what vLLM makes of it, what was measured"

        def chosen(key: str | None) -> None:
            if key == "s":
                self._ask_serve(adapter)
            elif key == "l":
                self._load(adapter, beside[0])
            elif key == "e":
                self._evaluate(adapter)
            elif key == "t":
                self._tune(adapter)
            elif key == "b":
                self._roll_back(adapter)
            elif key == "v":
                self._view(adapter)

        self.app.push_screen(Choose(f"{clean(adapter.label, 50)}:", choices), chosen)

    def _ask_serve(self, adapter: AdapterRecord) -> None:
        """One line of flags, which is the question, too."""

        def answered(line: str | None) -> None:
            if line is None:
                return
            try:
                flags = shlex.split(line)
            except ValueError:
                self.say("a quote in the flags is not closed", error=True)
                return
            self._begin(f"serving {adapter.label}", ["lora", "serve", adapter.label, "--", *flags])

        question = (
            f"Serve {clean(adapter.label, 80)} as a server by hand, on the first free port from 8000, with which flags "
            "of vllm serve? It is proved to be in effect once it is ready, and goes on until it is stopped."
        )
        self.app.push_screen(AskLine(question, SERVE_FLAGS[Path("/dev/nvidiactl").exists()]), answered)

    def _load(self, adapter: AdapterRecord, server: ServerRecord) -> None:
        words = ["lora", "serve", adapter.label, "--server", str(server.id)]
        self._begin(f"loading {adapter.label} into {clean(server.name, 30)}", words)

    def _evaluate(self, adapter: AdapterRecord) -> None:
        self._begin(f"evaluating {adapter.label}", ["lora", "eval", adapter.label, "--no-wait"])

    def _roll_back(self, adapter: AdapterRecord) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                words = ["lora", "rollback", adapter.name, "--to", str(adapter.version)]
                self._begin(f"putting {adapter.label} in its place", words)

        question = f"Put {adapter.label} in the place of the version of {adapter.name} that is served?"
        self.app.push_screen(Confirm(question, "put it there"), answered)

    def _tune(self, adapter: AdapterRecord) -> None:
        """A plan of what serving it costs, in the editor of Tune."""
        plan = self.app.data_dir / "plans" / f"{adapter.name}-{adapter.version}.toml"

        def ended(errand: Errand) -> None:
            if errand.status == 0:
                self.app.edit_plan(plan)

        self._begin(
            f"making a plan with {adapter.label}", ["lora", "price", adapter.label, "--out", str(plan)], ended, plan
        )

    def _view(self, adapter: AdapterRecord) -> None:
        from tui.screens.lora_adapter import AdapterScreen

        if adapter.id is not None:
            self.app.push_screen(AdapterScreen(adapter.id))

    # deleting

    @work(thread=True, group="delete", description="asks what needs an adapter")
    def ask_delete(self, adapter: AdapterRecord) -> None:
        """Delete this version after a question, or say what needs it."""
        try:
            why_not = lora_deeds.why_not_deleted(self.app.data_dir, adapter)
        except (EngineError, StoreError, OSError) as error:
            why_not = str(error)
        if why_not is not None:
            self.later(self.say, why_not, True)
        else:
            self.later(self._may_delete, adapter)

    def _may_delete(self, adapter: AdapterRecord) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                self._delete(adapter)

        size = size_text(adapter.size_bytes)
        question = f"Delete {clean(adapter.label, 80)} ({size})? Its files are gone for good, what was measured stays."
        self.app.push_screen(Confirm(question, "delete it"), answered)

    @work(thread=True, group="delete", description="deletes a version of an adapter")
    def _delete(self, adapter: AdapterRecord) -> None:
        try:
            said = lora_deeds.delete_adapter(self.app.data_dir, adapter)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, str(error), True)
        else:
            self.later(self.say, said)
        self.later(self.app.ask)

    # errands

    @work(thread=True, group="errand", description="starts a command")
    def _begin(
        self,
        what: str,
        words: list[str],
        ended: "Callable[[Errand], None] | None" = None,
        fresh: Path | None = None,
    ) -> None:
        """`fresh` is the file that it is to write: an older one goes."""
        try:
            if fresh is not None:
                fresh.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                fresh.unlink(missing_ok=True)
            errand = errands.begin(self.app.data_dir, clean(what, 120), words, self.app.vllm)
        except (EngineError, StoreError, OSError) as error:
            self.later(self.say, f"{clean(what, 120)}: it does not start: {error}", True)
        else:
            self.later(self._began, errand, ended)

    def _began(self, errand: Errand, ended: "Callable[[Errand], None] | None") -> None:
        self._errands.append((errand, ended or (lambda _: None)))
        self._look()

    def _look(self) -> None:
        """What is under way, and what came of that which ended."""
        if not self._errands:
            return
        going_on = []
        for errand, ended in self._errands:
            if errand.status is None:
                going_on.append((errand, ended))
            else:
                self._read_outcome(errand, ended)
        self._errands = going_on
        line = self.query_one("#errands", Static)
        line.display = bool(going_on)
        said = "   ".join(f"◐ {errand.what}  {span(errand.seconds)}" for errand, _ in going_on)
        line.update(Content(f"{said}   goes on when you leave" if going_on else ""))

    @work(thread=True, group="errand", description="reads what a command said")
    def _read_outcome(self, errand: Errand, ended: "Callable[[Errand], None]") -> None:
        self.later(self._ended, errand, errand.outcome(), ended)

    def _ended(self, errand: Errand, said: str, ended: "Callable[[Errand], None]") -> None:
        self.say(said, error=errand.status != 0)
        ended(errand)
        self.app.ask()


def base_servers(adapter: AdapterRecord, servers: tuple[ServerRecord, ...]) -> list[ServerRecord]:
    """Servers by hand that are ready, serve its base and take adapters while they run, the newest first."""
    return [
        server
        for server in reversed(servers)
        if server.session_id is None
        and server.state == "ready"
        and server.model == adapter.base_model
        and "--enable-lora" in server.command
    ]
