"""The tail of a log, shown in batches."""

from textual.widgets import Log

from tui.servers.log_tail import KEPT_LINES, LogLines


class LogView(Log):
    """A log that follows its end until a person scrolls up, and again once they are back at the end."""

    DEFAULT_CSS = """
    LogView { height: 1fr; background: $background; scrollbar-size: 1 1; overflow-x: auto; padding: 0 1; }
    """

    _following = True  # also for what Textual asks before this is made

    def __init__(self, id: str | None = None) -> None:
        super().__init__(max_lines=KEPT_LINES, id=id)
        self._path = ""
        self._shown = 0
        self._note: str | None = None

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end

    def on_resize(self) -> None:
        self._stay_at_end()

    def watch_show_horizontal_scrollbar(self) -> None:
        """It takes the last line from what is seen."""
        self._stay_at_end()

    def _stay_at_end(self) -> None:
        if self._following:
            self.scroll_end(animate=False, x_axis=False)

    def follow(self, log: LogLines) -> None:
        """Add what is new since the last call; another file, or one that began anew, replaces all."""
        if log.path != self._path or log.end < self._shown or log.note != self._note:
            self.clear()
            self._following = True
            self._path, self._shown, self._note = log.path, 0, log.note
            if log.note:
                self.write_lines([log.note])
        new = min(log.end - self._shown, len(log.lines))
        if new:
            self.write_lines(log.lines[-new:], scroll_end=False)
            if self._following:
                self.scroll_end(animate=False, immediate=True, x_axis=False)
        self._shown = log.end
