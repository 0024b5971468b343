"""One question answered with one line of text."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class AskLine(ModalScreen[str | None]):
    """Enter gives the line, esc gives None. An empty line is not given."""

    DEFAULT_CSS = """
    AskLine { align: center middle; }
    AskLine Vertical {
        width: 74; max-width: 100%; height: auto; padding: 0 1;
        border: round $accent; background: $surface;
    }
    AskLine Static { height: auto; }
    AskLine Input { background: $boost; }
    AskLine .keys { color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, question: str, value: str = "", hint: str = "") -> None:
        """`question` and `hint` are our own words; `value` stands in the field."""
        super().__init__()
        self._question = question
        self._value = value
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            yield Input(self._value, placeholder=self._hint, compact=True, select_on_focus=False)
            yield Static("enter does it   esc back, nothing happens", markup=False, classes="keys")

    @on(Input.Submitted)
    def give(self, event: Input.Submitted) -> None:
        """Hand the line over."""
        if event.value.strip():
            self.dismiss(event.value.strip())

    def action_leave(self) -> None:
        """Nothing was said."""
        self.dismiss(None)
