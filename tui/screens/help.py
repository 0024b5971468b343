"""`?`: the keys that work on a screen and what each of its numbers means."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.screens.base import LlmtuneScreen

PAGE = 70  # cells of a line: the page's 76 without border, padding and scrollbar
EVERYWHERE = (
    ("1 to 5", "Servers, Monitor, Tune, Sessions, LoRA"),
    ("ctrl+p", "palette: everything that is possible now"),
    ("esc", "back"),
    ("q", "leave; what runs goes on running, and says so"),
)


class HelpScreen(ModalScreen[None]):
    """A page over the screen it explains."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll {
        width: 76; max-width: 100%; height: auto; max-height: 100%;
        border: round $accent; background: $surface; padding: 0 1;
    }
    HelpScreen Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "close"),
        Binding("j", "scroll_lines(1)", show=False),
        Binding("k", "scroll_lines(-1)", show=False),
    ]

    def __init__(self, about: LlmtuneScreen) -> None:
        super().__init__()
        self._about = about

    def compose(self) -> ComposeResult:
        with VerticalScroll() as page:
            page.border_title = "help"
            page.border_subtitle = "esc closes"
            yield Static(self._keys())
            if self._about.LEGEND:
                yield Static(self._legend())

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll the page by some lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def _keys(self) -> Content:
        """The screen's own keys as it declares them, then those of every screen."""
        own = []
        for binding in self._about.BINDINGS:
            if isinstance(binding, Binding) and binding.description and binding.action != "back":
                own.append((self.app.get_key_display(binding), binding.tooltip or binding.description))
        return _page("Keys", [*own, *EVERYWHERE])

    def _legend(self) -> Content:
        return Content.assemble("\n", _page("Numbers", list(self._about.LEGEND)))


def _page(title: str, rows: list[tuple[str, str]]) -> Content:
    """Two columns under a title; the second wraps within itself."""
    width = max(len(name) for name, _ in rows) + 2
    lines: list[Content] = [Content.styled(title, "bold $accent")]
    for name, meaning in rows:
        words, line = meaning.split(), ""
        first = True
        for word in [*words, ""]:
            if word and len(line) + len(word) < PAGE - width:
                line = f"{line} {word}" if line else word
                continue
            lines.append(Content.assemble((f"{name if first else '':<{width}}", "bold"), line))
            first, line = False, word
    return Content("\n").join(lines)
