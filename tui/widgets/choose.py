"""One question answered with one key."""

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static


class Choose(ModalScreen[str | None]):
    """Gives the chosen key, or None for escape. `choices` is key → words, both our own."""

    DEFAULT_CSS = """
    Choose { align: center middle; }
    Choose Vertical {
        width: 60; max-width: 100%; height: auto; padding: 0 1;
        border: round $accent; background: $surface;
    }
    Choose Static { height: auto; }
    """

    def __init__(self, question: str, choices: Mapping[str, str]) -> None:
        super().__init__()
        self._question = question
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            for key, words in self._choices.items():
                yield Static(f"  {key}  {words}", markup=False)
            yield Static("  esc  back, nothing happens", markup=False)

    def on_key(self, event: Key) -> None:
        event.stop()
        if event.key == "escape":
            self.dismiss(None)
        elif event.key in self._choices:
            self.dismiss(event.key)
