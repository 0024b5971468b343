"""The first line: the program, the number keys, the clock."""

from textual import getters
from textual.content import Content
from textual.widget import Widget

from tui.app import MODE_LABELS, LlmtuneApp


class Header(Widget):
    """`llmtune   1 Servers  2 Monitor …   14:02:11`, with the present screen marked."""

    app = getters.app(LlmtuneApp)

    DEFAULT_CSS = """
    Header { dock: top; height: 1; background: $panel; color: $foreground; }
    """

    def on_mount(self) -> None:
        self.set_interval(1.0, self.refresh)

    def render(self) -> Content:
        parts: list[Content | str | tuple[str, str]] = [(" llmtune ", "bold $accent"), "  "]
        for key, (mode, label) in enumerate(MODE_LABELS.items(), start=1):
            tab = f" {key} {label} "
            parts.append((tab, "bold reverse") if mode == self.app.current_mode else (tab, ""))
            parts.append(" ")
        left = Content.assemble(*parts)
        clock = self.app.now().strftime("%H:%M:%S ")
        room = self.size.width - left.cell_length - len(clock)
        return Content.assemble(left, " " * max(1, room), clock)
