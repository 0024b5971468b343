"""A form whose file or folder is looked at first, and kept once a person has read what was found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, Static
from textual.worker import get_current_worker

from engine.records import EngineError
from engine.text import clean, redact
from store.errors import StoreError
from tui.screens.base import LlmtuneScreen
from tui.widgets.confirm import Confirm

Values = Mapping[str, str]
MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found, a line each; `question` asks whether it is to be kept, None where it cannot be, `deed` says what
    a yes does. `found` is for whoever keeps it."""

    lines: tuple[str, ...]
    question: str | None
    deed: str = "keep it"
    found: Any = None


class LookingScreen(LlmtuneScreen):
    """A subclass has FIELDS (rows of name, label, hint) and does `examine` and `keep`, both in a thread; they raise
    EngineError, StoreError or OSError in one line. `esc` leaves a field, then the form."""

    AUTO_FOCUS = ""

    FIELDS: ClassVar[tuple[tuple[tuple[str, str, str], ...], ...]] = ()
    NOTHING: ClassVar[str] = ""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="out of the field, so that single keys are keys again; then back"),
        Binding("enter", "look", "look", tooltip="look at it: a report, nothing is kept"),
        Binding("ctrl+s,S", "keep", "keep", key_display="^s", tooltip="keep what was looked at, after one question"),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    DEFAULT_CSS = """
    LookingScreen #form { height: auto; }
    LookingScreen #form Horizontal { height: 1; }
    LookingScreen Label { width: 12; padding: 0 0 0 1; color: $text-muted; }
    LookingScreen Input { width: 1fr; background: $boost; }
    LookingScreen #report { height: 1fr; border-top: solid $panel; padding: 0 1; scrollbar-size-vertical: 1; }
    LookingScreen #report Static { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._looked_at: tuple[dict[str, str], Looked] | None = None
        self._busy = False

    def compose_body(self) -> ComposeResult:
        with Vertical(id="form"):
            for row in self.FIELDS:
                with Horizontal():
                    for name, label, hint in row:
                        yield Label(label, markup=False)
                        yield Input(placeholder=hint, id=f"l-{name}", compact=True, select_on_focus=False)
        with VerticalScroll(id="report"):
            yield Static(Content(self.NOTHING), id="found", markup=False)

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    # what a subclass does

    def examine(self, values: Values, width: int, on_progress: Callable[[str], None]) -> Looked:
        """Look, for a report of so many cells. `on_progress` says how far it got and ends it where nobody waits."""
        raise NotImplementedError

    def keep(self, looked: Looked, values: Values) -> str:
        """Keep it; what came of it."""
        raise NotImplementedError

    # looking

    @property
    def values(self) -> dict[str, str]:
        """The fields as they stand."""
        return {name: self.query_one(f"#l-{name}", Input).value.strip() for row in self.FIELDS for name, _, _ in row}

    @on(Input.Submitted)
    def action_look(self) -> None:
        """Look at what the form names."""
        if not self._busy:
            self._busy = True
            self._show(("◐ looking …",))
            self._look(self.values, self.size.width - 3)

    @work(thread=True, group="look", description="looks at a file")
    def _look(self, values: dict[str, str], width: int) -> None:
        worker = get_current_worker()

        def on_progress(said: str) -> None:
            if worker.is_cancelled:
                raise EngineError("nobody waits for it")
            self.later(self._show, (f"◐ {said}",))

        try:
            looked = self.examine(values, width, on_progress)
        except (EngineError, StoreError, OSError) as error:
            looked = Looked((f"✗ {clean(redact(str(error)), 400)}",), None)
        self.later(self._looked, values, looked)

    def _looked(self, values: dict[str, str], looked: Looked) -> None:
        self._busy = False
        self._looked_at = values, looked
        self._show(looked.lines)
        if looked.question is not None:
            self.say("that is what was found: ^s keeps it, esc leaves it")

    def _show(self, lines: tuple[str, ...]) -> None:
        shown = [clean(line, 2000) for line in lines[:MOST_LINES]]
        if len(lines) > MOST_LINES:
            shown.append(f"and {len(lines) - MOST_LINES:,} lines more")
        self.query_one("#found", Static).update(Content("\n".join(shown)))
        self.query_one("#report", VerticalScroll).scroll_home(animate=False)

    # keeping

    def action_keep(self) -> None:
        """Ask once, and keep what was looked at."""
        if self._busy:
            return
        if self._looked_at is None or self._looked_at[0] != self.values:
            self.say("look at it first: enter", error=True)
            return
        values, looked = self._looked_at
        if looked.question is None:
            self.say("it cannot be kept: see what was found", error=True)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._busy = True
                self._keep(values, looked)

        self.app.push_screen(Confirm(looked.question, looked.deed), answered)

    @work(thread=True, group="keep", description="keeps what was looked at")
    def _keep(self, values: dict[str, str], looked: Looked) -> None:
        try:
            said = self.keep(looked, values)
        except (EngineError, StoreError, OSError) as error:
            self.later(self._failed, str(error))
        else:
            self.later(self._kept, said)

    def _failed(self, line: str) -> None:
        self._busy = False
        self.say(line, error=True)

    def _kept(self, said: str) -> None:
        """Back to the lists, which show it; there it is said, too."""
        self.app.pop_screen()
        below = self.app.screen
        if isinstance(below, LlmtuneScreen):
            below.say(said)
        self.app.ask()

    def action_back(self) -> None:
        """Out of the field, then out of the form."""
        if isinstance(self.focused, Input):
            self.query_one("#report").focus()
        else:
            super().action_back()
