"""Copying: through the terminal (OSC 52), which fails silently in many, and so on the screen too."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.text import clean


class CopyPanel(ModalScreen[None]):
    """Sends `text` to the terminal's clipboard and shows it, to be selected by mouse where that did not work."""

    DEFAULT_CSS = """
    CopyPanel { align: center middle; }
    CopyPanel VerticalScroll {
        width: 100%; height: auto; max-height: 100%; border-top: solid $accent; border-bottom: solid $accent;
        background: $surface;
    }
    CopyPanel Static { height: auto; }
    CopyPanel .keys { color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,y,q", "dismiss", "close")]

    def __init__(self, text: str, what: str) -> None:
        """`text` goes to the clipboard as it is; `what` is our own word for it ("command line")."""
        super().__init__()
        self._text = text
        self._what = what

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(
                f"{self._what}, sent to the clipboard. If your terminal does not take it, select it here with the "
                "mouse, in most terminals with shift held. esc closes.",
                markup=False,
                classes="keys",
            )
            yield Static("\n".join(clean(line) for line in self._text.splitlines()), markup=False)

    def on_mount(self) -> None:
        self.app.copy_to_clipboard(self._text)
