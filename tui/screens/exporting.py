"""A screen from which a session's report is written to a file."""

from textual import work

from store.errors import StoreError
from tui.screens.base import LlmtuneScreen
from tui.sessions import session_files
from tui.widgets.choose import Choose

FORMATS = {"h": "html", "m": "md", "j": "json", "c": "csv"}
WORDS = {
    "h": "HTML: one file with its pictures, to read and to print",
    "m": "Markdown",
    "j": "JSON: all that is known",
    "c": "CSV: one line a run",
}


class ExportingScreen(LlmtuneScreen):
    """Asks for the format, writes, and says where."""

    def ask_export(self, session_id: int) -> None:
        """One question, then the file."""

        def chosen(key: str | None) -> None:
            if key is not None:
                self._export(session_id, FORMATS[key])

        self.app.push_screen(Choose(f"Export session {session_id} as", WORDS), chosen)

    @work(thread=True, group="export", description="writes a report")
    def _export(self, session_id: int, form: str) -> None:
        try:
            path = session_files.export(self.app.data_dir, session_id, form)
        except (StoreError, OSError) as error:
            self.later(self.say, f"not exported: {error}", True)
        else:
            self.later(self.say, f"written: {path}")
