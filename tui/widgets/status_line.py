"""One line above the footer for news and errors; it takes no room while there is nothing to say."""

from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from engine.text import clean, redact

NEWS_S = 12.0


class StatusLine(Widget):
    """An unreadable database is said as long as it lasts; then the last error; then news, for some seconds."""

    DEFAULT_CSS = """
    StatusLine { height: auto; max-height: 3; display: none; padding: 0 1; background: $panel; }
    StatusLine.-said { display: block; }
    """

    store_error: reactive[str | None] = reactive(None, layout=True)
    line: reactive[str] = reactive("", layout=True)
    is_error: reactive[bool] = reactive(False)

    _timer: Timer | None = None

    def say(self, line: str, error: bool = False) -> None:
        """Show `line`; an error stays until something else is said, news goes after some seconds."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.is_error = error
        self.line = line
        if line and not error:
            self._timer = self.set_timer(NEWS_S, self._forget)

    def _forget(self) -> None:
        self.line = ""

    def watch_store_error(self) -> None:
        self.set_class(bool(self.store_error or self.line), "-said")

    def watch_line(self) -> None:
        self.set_class(bool(self.store_error or self.line), "-said")

    def render(self) -> Content:
        if self.store_error:
            return Content.assemble(("✗ ", "bold $error"), (clean(self.store_error, 400), "$error"))
        if self.is_error:
            return Content.assemble(("✗ ", "bold $error"), clean(redact(self.line), 400))
        return Content.assemble(("✔ ", "bold $success"), clean(redact(self.line), 400))
