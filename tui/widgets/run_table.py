"""The runs of a session, as many thousand as there are: only the lines that are seen are ever made."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from engine.text import clean
from store.reader import RunLine
from tui.metric_text import metric_value, number
from tui.run_source import RUN_GLYPHS, kind_words

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


class RunTable(ScrollView, can_focus=True):
    """One line a run and a cursor."""

    DEFAULT_CSS = """
    RunTable { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "charts"),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1000000000)", show=False),
        Binding("end", "move(1000000000)", show=False),
    ]

    class Chosen(Message):
        """Another run lies under the cursor."""

    class Opened(Message):
        """Enter, or a click on the run under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._runs: Sequence[RunLine] = ()
        self._labels: Mapping[int, str] = {}
        self._at = 0

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        return self._runs[self._at] if self._at < len(self._runs) else None

    @property
    def ids(self) -> tuple[int, ...]:
        """The runs of the list, in its order."""
        return tuple(run.id for run in self._runs)

    def show(self, runs: Sequence[RunLine], labels: Mapping[int, str], to_end: bool = False) -> None:
        """Show these runs in this order; the cursor stays on its run, or goes to the last."""
        before = self.chosen
        self._runs, self._labels = runs, labels
        if to_end:
            self._at = max(0, len(runs) - 1)
        elif before is not None and not (self._at < len(runs) and runs[self._at].id == before.id):
            self._at = next((at for at, run in enumerate(runs) if run.id == before.id), 0)
        self.virtual_size = Size(self.size.width, len(runs))
        self._see()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        width = self.size.width
        style = self.rich_style
        if at >= len(self._runs):
            return Strip.blank(width, style)
        if at == self._at:
            style += Style(reverse=True) if self.has_focus else Style(bold=True)
        return Strip([Segment(line(cells(self._runs[at], self._labels), width), style)]).adjust_cell_length(
            width, style
        )

    def action_move(self, by: int) -> None:
        """Move the cursor by so many runs."""
        at = min(max(self._at + by, 0), max(0, len(self._runs) - 1))
        if at != self._at:
            self._at = at
            self._see()
            self.refresh()
            self.post_message(self.Chosen())

    def action_page(self, by: int) -> None:
        """Move by what is seen at once."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_open(self) -> None:
        """Open the run under the cursor."""
        if self.chosen is not None:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Choose a run, open the chosen one."""
        at = event.y + self.scroll_offset.y
        if at == self._at:
            self.action_open()
        elif at < len(self._runs):
            self.action_move(at - self._at)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _see(self) -> None:
        self.scroll_to_region(Region(0, self._at, 1, 1), animate=False, force=True)


def line(words: Sequence[str], width: int) -> str:
    """The cells in their columns, cut at the edge."""
    widths = [*WIDTHS]
    if width >= ROOMY:
        widths[CANDIDATE] = ROOMY_CANDIDATE
    parts = []
    for at, (text, room) in enumerate(zip(words, widths, strict=False)):
        cut = _cut(text, room - 1)
        blanks = " " * (room - 1 - cell_len(cut))
        parts.append(f" {blanks}{cut}" if at in RIGHT else f" {cut}{blanks}")
    rest = width - sum(widths) - 2
    parts.append(f"  {_cut(words[-1], rest)}" if rest > 0 else "")
    return "".join(parts)


def _cut(text: str, room: int) -> str:
    """At most so many cells of it, its end an ellipsis where something is left out."""

    return text if cell_len(text) <= room else set_cell_size(text, max(0, room - 1)) + "…"
