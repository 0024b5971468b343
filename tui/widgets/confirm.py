"""The one question before something destructive."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.text import clean


class Confirm(ModalScreen[bool]):
    """Asks once: `y` or enter does it, `n` or escape does not. The result is given to `push_screen`'s callback."""

    DEFAULT_CSS = """
    Confirm { align: center middle; }
    Confirm Vertical {
        width: 66; max-width: 100%; height: auto; border: round $warning; background: $surface; padding: 0 1;
    }
    Confirm Static { height: auto; }
    Confirm .keys { color: $text-muted; padding: 1 0 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
    ]

    def __init__(self, question: str, deed: str) -> None:
        """`question` may hold text from outside; `deed` says what `y` does ("stop it")."""
        super().__init__()
        self._question = clean(question, 400)
        self._deed = deed

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            yield Static(f"y {self._deed}   n back, nothing happens", markup=False, classes="keys")

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)
