"""Two sessions held against each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from store.clock import utc_now
from tui.legend import Number
from tui.screens.document import DocumentScreen
from tui.sessions import comparison_files
from tui.widgets.choose import Choose
from tui.widgets.copy import CopyPanel
from tuning.compared.comparing import compare, side_of
from tuning.compared.records import SessionComparison
from tuning.compared.report import parts
from tuning.document import Part

if TYPE_CHECKING:
    from store.reader import Reader

WIDE = 140  # cells
EXPORTS = {"h": ("html", "HTML"), "j": ("json", "JSON"), "m": ("md", "Markdown")}


class CompareScreen(DocumentScreen):
    """A is the one named first; it goes on filling while one of the two runs."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("in A, in B", "the candidate against the default of that session, with the sign of its verdict there"),
        Number("B against A", "(1 + effect in B)/(1 + effect in A) − 1, with an interval that holds for all together"),
        Number("default", "itself: its level in both; time and machine are in the difference"),
        Number("differs", "the interval excludes 0; agrees: it lies within the smallest effect; ?: neither"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "swap", "swap", tooltip="B becomes A"),
        Binding("m", "metrics", "metrics", tooltip="also the metrics that decide nothing, or not"),
        Binding("e", "export", "export", tooltip="write HTML, JSON or Markdown to the exports folder"),
        Binding("y", "copy", "copy", tooltip="the command that prints this comparison"),
    ]

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self._pair = (a, b)
        self._all_metrics = False
        self._shown: SessionComparison | None = None
        self._read: tuple[object, SessionComparison] | None = None  # of the poller's thread alone

    def refresh_from_store(self, reader: "Reader") -> SessionComparison:
        """The same object as before where nothing happened in either."""
        pair = self._pair
        marks = pair, [(reader.session(number), reader.marks(number)) for number in pair]
        if self._read is None or self._read[0] != marks:
            now = utc_now()
            a, b = (
                side_of(session, reader.launches(number), reader.runs(number), now)
                for number, (session, _) in zip(pair, marks[1], strict=True)
            )
            self._read = marks, compare(a, b)
        return self._read[1]

    def show(self, snapshot: SessionComparison) -> None:
        """Draw it where it is another, and of the two that are meant now."""
        if snapshot is not self._shown and (snapshot.a.id, snapshot.b.id) == self._pair:
            self._shown = snapshot
            self.redraw()

    def parts(self, width: int) -> Sequence[Part]:
        """Intervals of each effect for itself only where there is room for them in one table."""
        if self._shown is None:
            return ()
        return parts(self._shown, all_metrics=self._all_metrics, wide=width >= WIDE)

    def action_swap(self) -> None:
        """Hold A against B."""
        self._pair = self._pair[1], self._pair[0]
        self.app.ask()

    def action_metrics(self) -> None:
        """All that was compared, or what decides alone."""
        self._all_metrics = not self._all_metrics
        self.redraw()

    def action_export(self) -> None:
        """Ask for the format, and write the file."""
        shown = self._shown
        if shown is None:
            return

        def chosen(key: str | None) -> None:
            if key is not None:
                self._export(shown, EXPORTS[key][0])

        words = {key: words for key, (_, words) in EXPORTS.items()}
        self.app.push_screen(
            Choose(f"Export the comparison of sessions {shown.a.id} and {shown.b.id} as", words), chosen
        )

    @work(thread=True, group="export", description="writes a comparison")
    def _export(self, compared: SessionComparison, form: str) -> None:
        try:
            path = comparison_files.export(self.app.data_dir, compared, form)
        except OSError as error:
            self.later(self.say, f"not exported: {error}", True)
        else:
            self.later(self.say, f"written: {path}")

    def action_copy(self) -> None:
        """The command, to the clipboard and shown."""
        words = f"llmtune compare {self._pair[0]} {self._pair[1]} --data-dir {self.app.data_dir}"
        self.app.push_screen(CopyPanel(words, "command line"))
