"""A screen of one document to read: it scrolls, and is laid anew where the terminal changes its size."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.document_text import document_content
from tui.screens.base import LlmtuneScreen
from tuning.document import Part

MARGIN = 3  # cells: the padding of both sides and the scrollbar


class DocumentScreen(LlmtuneScreen):
    """A subclass has `parts`, and calls `redraw` when they are others."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("j", "scroll_by(1)", show=False),
        Binding("k", "scroll_by(-1)", show=False),
    ]

    DEFAULT_CSS = """
    DocumentScreen #document { padding: 0 1; scrollbar-size-vertical: 1; }
    DocumentScreen #document Static { height: auto; }
    """

    def parts(self, width: int) -> Sequence[Part]:
        """What to show on a terminal of so many cells; nothing yet where there are none."""
        raise NotImplementedError

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(id="document"):
            yield Static(Content("reading …"), markup=False)

    def on_mount(self) -> None:
        self.query_one("#document").focus()

    def redraw(self) -> None:
        if parts := self.parts(self.size.width):
            content = document_content(parts, self.size.width - MARGIN)
            self.query_one("#document Static", Static).update(content)

    def action_scroll_by(self, lines: int) -> None:
        """Scroll by some lines."""
        self.query_one("#document", VerticalScroll).scroll_relative(y=lines, animate=False)
