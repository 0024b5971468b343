"""Results that were measured elsewhere and imported: their folders, and what their runs say together."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from tui.legend import Number
from tui.screens.document import DocumentScreen
from tui.screens.filtering import FilteringScreen
from tui.sessions.imports_view import TITLES, ImportLine, import_lines, matching
from tui.widgets.copy import CopyPanel
from tui.widgets.line_list import LineList, in_columns
from tuning.document import Part
from tuning.imported.analysis import analyse
from tuning.imported.keeping import file_of
from tuning.imported.records import ImportReport
from tuning.imported.report import parts

if TYPE_CHECKING:
    from store.reader import Reader

GAP = 2
WIDTHS = (8, 8, 18)  # each with one blank before it; the last column has what is left
RIGHT = frozenset({0, 1})
NOTHING = (
    "Nothing was imported yet. `llmtune import PATH` reads results of `vllm bench serve` and folders of `vllm bench "
    "sweep`, and keeps them here."
)


def tail(text: str, room: int) -> str:
    """At most so many cells of its end, which tells folders apart."""
    if cell_len(text) <= room:
        return text
    while text and cell_len(text) >= room:
        text = text[1:]
    return f"…{text}"


class ImportTable(LineList):
    """One line a folder."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[ImportLine] = ()

    def show(self, lines: Sequence[ImportLine]) -> None:
        """Show these; the cursor stays on its line."""
        self._lines = lines
        self.lay([line.id for line in lines])

    @property
    def chosen(self) -> ImportLine | None:
        """The line under the cursor."""
        return self._lines[self.at] if self.at < len(self._lines) else None

    def line(self, at: int, width: int) -> str:
        *figures, folder = self._lines[at].cells
        return in_columns((*figures, tail(folder, width - sum(WIDTHS) - GAP)), WIDTHS, RIGHT, width, GAP)


class ImportsScreen(FilteringScreen):
    """A list; `enter` opens the report of a folder's runs."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("files", "kept; the same content counts once, whatever it is called"),
        Number("runs", "results in them, those that do not count too"),
        Number("imported", "when the newest of them was, here"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("enter", "open", "open", tooltip="what the runs of this folder say"),
        Binding(
            "slash", "filter", "filter", key_display="/", tooltip="show only folders with these words; esc shows all"
        ),
    ]

    DEFAULT_CSS = """
    ImportsScreen #heads { height: 1; color: $text-muted; }
    ImportsScreen #none { padding: 1; display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[ImportLine, ...] | None = None
        self._read: tuple[object, tuple[ImportLine, ...]] | None = None  # of the poller's thread alone

    def compose_body(self) -> ComposeResult:
        yield self.filter_line("folder")
        yield Static("", id="heads", markup=False)
        yield ImportTable(id="list")
        yield Static(NOTHING, id="none", markup=False)

    def on_mount(self) -> None:
        self.query_one(ImportTable).focus()

    @property
    def filtered_list(self) -> ImportTable:
        return self.query_one(ImportTable)

    def refresh_from_store(self, reader: "Reader") -> tuple[ImportLine, ...]:
        """The same object as before where nothing was imported."""
        marks = reader.import_marks()
        if self._read is None or self._read[0] != marks:
            self._read = marks, import_lines(reader.import_files())
        return self._read[1]

    def show(self, snapshot: tuple[ImportLine, ...]) -> None:
        """Lay the list anew where something was imported."""
        if snapshot is not self._lines:
            self._lines = snapshot
            self.fill()

    def redraw(self) -> None:
        self.query_one("#heads", Static).update(Content(in_columns(TITLES, WIDTHS, RIGHT, self.size.width, GAP)))

    def fill(self) -> None:
        lines = self._lines or ()
        self.query_one(ImportTable).show(matching(lines, self.filter_words))
        self.query_one("#none").display = not lines
        self.query_one("#heads").display = self.query_one(ImportTable).display = bool(lines)

    @on(ImportTable.Opened)
    def action_open(self) -> None:
        """The report of the chosen folder."""
        line = self.query_one(ImportTable).chosen
        if line is not None:
            self.app.push_screen(ImportReportScreen(line.folder))


class ImportReportScreen(DocumentScreen):
    """What the kept runs of one folder, or of all (None), say; as `llmtune import --kept` does."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("±", "the farther bound of a 95 % interval over launches, as a share of the mean"),
        Number("~", "the same over runs or stretches of runs, which are no launches: too narrow"),
        Number("?", "a difference without an interval, which says nothing"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy", tooltip="the command that prints this report"),
    ]

    def __init__(self, folder: str | None) -> None:
        super().__init__()
        self._folder = folder
        self._report: ImportReport | None = None
        self._read: tuple[object, ImportReport | None] | None = None  # of the poller's thread alone

    def refresh_from_store(self, reader: "Reader") -> ImportReport | None:
        """The same object as before where nothing was imported; None where nothing is kept of the folder."""
        marks = reader.import_marks()
        if self._read is None or self._read[0] != marks:
            lines = import_lines(reader.import_files())
            # With one folder alone there is no line of all.
            line = next((line for line in lines if line.folder == self._folder or len(lines) == 1), None)
            files = reader.import_files(with_raw=True, ids=line.files) if line is not None else []
            self._read = marks, analyse([file_of(each) for each in files]) if files else None
        return self._read[1]

    def show(self, snapshot: ImportReport | None) -> None:
        """Draw it where it is another."""
        if snapshot is not None and snapshot is not self._report:
            self._report = snapshot
            self.redraw()

    def parts(self, width: int) -> Sequence[Part]:
        """The report as a terminal has it."""
        return parts(self._report) if self._report is not None else ()

    def action_copy(self) -> None:
        """The command, to the clipboard and shown."""
        path = f" {shlex.quote(self._folder)}" if self._folder is not None else ""
        words = f"llmtune import --kept{path} --data-dir {self.app.data_dir}"
        self.app.push_screen(CopyPanel(words, "command line"))
