"""The runs of a session, as many thousand as there are: only the lines that are seen are ever made."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from engine.text import clean
from store.reader import RunLine
from tui.metric_text import metric_value, number
from tui.runs.run_words import RUN_GLYPHS, kind_words
from tui.widgets.line_list import LineList, in_columns

TITLES = (
    "block",
    "candidate",
    "workload",
    "run",
    "state",
    "tok/s",
    "p99 TTFT",
    "KV peak",
    "what limited it, or why not",
)
WIDTHS = (6, 16, 10, 10, 11, 8, 10, 8)  # each with one blank before it; the last column has what is left
CANDIDATE, ROOMY, ROOMY_CANDIDATE = 1, 120, 34  # which of them grows, from how many cells on, and to how many
RIGHT = frozenset({0, 5, 6, 7})


def cells(run: RunLine, labels: Mapping[int, str]) -> tuple[str, ...]:
    """What the list shows of a run, column by column. `labels` are the candidates' words by index."""
    return (
        str(run.block + 1),
        labels.get(run.candidate, str(run.candidate)),
        clean(run.workload, 40),
        kind_words(run.kind, run.repeat),
        f"{RUN_GLYPHS.get(run.state, '')} {run.state}",
        number(run.total_tok_per_s),
        metric_value("p99_ttft_ms", run.p99_ttft_ms),
        metric_value("kv_peak_perc", run.kv_peak_perc),
        clean(run.reason or run.limited_by or "", 300),
    )


class RunTable(LineList):
    """One line a run."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "charts")]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._runs: Sequence[RunLine] = ()
        self._labels: Mapping[int, str] = {}

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        return self._runs[self.at] if self.at < len(self._runs) else None

    def show(self, runs: Sequence[RunLine], labels: Mapping[int, str], to_end: bool = False) -> None:
        """Show these runs in this order; the cursor stays on its run, or goes to the last."""
        self._runs, self._labels = runs, labels
        self.lay([run.id for run in runs], to_end)

    def line(self, at: int, width: int) -> str:
        return line(cells(self._runs[at], self._labels), width)


def line(words: Sequence[str], width: int) -> str:
    """The cells in their columns, cut at the edge."""
    widths = [*WIDTHS]
    if width >= ROOMY:
        widths[CANDIDATE] = ROOMY_CANDIDATE
    return in_columns(words, widths, RIGHT, width)
