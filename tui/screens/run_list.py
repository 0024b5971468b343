"""Every run of a session; `enter` opens one as charts."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from store.clock import parse_utc
from store.reader import RunLine
from tui.format import local_minute
from tui.legend import Number
from tui.runs.run_words import candidate_label
from tui.screens.filtering import FilteringScreen
from tui.screens.run_charts import RunChartsScreen, fitted
from tui.widgets.run_table import TITLES, RunTable, cells, line
from tuning.figures import duration_text

if TYPE_CHECKING:
    from store.reader import Reader

READ_S = 3.0  # how often the runs of a session that goes on are read: ten thousand take some hundredths of a second
NOTHING = "No run was made in this session yet."


@dataclass(frozen=True, slots=True)
class RunsSnapshot:
    """The runs in the order in which they were made, the candidates' labels by index."""

    title: str
    runs: tuple[RunLine, ...]
    labels: Mapping[int, str]
    live: bool


class RunListScreen(FilteringScreen):
    """The list, and what is to be said of the run under the cursor."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("tok/s", "prompt and generated tokens per second of the run, as the benchmark counted them"),
        Number("p99 TTFT", "99th percentile of the time to first token, as the clients saw it"),
        Number("KV peak", "largest share of the KV cache in use, of the samples taken once a second"),
        Number("last column", "why a run does not count; else what limited the server during it"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", key_display="/", tooltip="only runs with these words; esc shows all"),
        Binding("escape", "back", "back"),
    ]

    DEFAULT_CSS = """
    RunListScreen #title, RunListScreen #heads { height: 1; }
    RunListScreen #title { padding: 0 1; }
    RunListScreen #heads { color: $text-muted; }
    RunListScreen #said { height: 3; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, session_id: int) -> None:
        super().__init__()
        self._session_id = session_id
        self._snapshot: RunsSnapshot | None = None  # what is shown
        self._read: RunsSnapshot | None = None  # of the poller's thread alone
        self._read_at = 0.0

    def compose_body(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield self.filter_line("candidate, workload, kind, state")
        yield Static("", id="heads", markup=False)
        yield RunTable(id="runs")
        yield Static("", id="said", markup=False)

    def on_mount(self) -> None:
        self.query_one(RunTable).focus()

    @property
    def filtered_list(self) -> RunTable:
        return self.query_one(RunTable)

    # feeding

    def refresh_from_store(self, reader: "Reader") -> RunsSnapshot:
        """The runs; those of a session that is over are read once."""
        if self._read is not None and (not self._read.live or monotonic() - self._read_at < READ_S):
            return self._read
        session = reader.session(self._session_id)
        labels = {index: candidate_label(session, index) for index in range(len(session.candidates))}
        title = f'session {session.id} "{clean(session.name, 40)}"  {session.state}'
        live = session.state in ("waiting", "running", "paused")
        runs = tuple(reader.run_lines(self._session_id))
        if self._read is None or self._read.runs != runs or self._read.live != live:
            self._read = RunsSnapshot(title, runs, labels, live)
        self._read_at = monotonic()
        return self._read

    def show(self, snapshot: RunsSnapshot) -> None:
        """Fill the list; of a session that goes on, the newest run is chosen first."""
        if snapshot is self._snapshot:
            return
        first, self._snapshot = self._snapshot is None, snapshot
        self.fill(to_end=first and snapshot.live)

    def redraw(self) -> None:
        self.fill()

    def fill(self, to_end: bool = False) -> None:
        """Show the runs with the words; with `to_end` the last is chosen."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        words = self.filter_words.lower().split()
        runs = [run for run in snapshot.runs if _matches(run, snapshot.labels, words)] if words else snapshot.runs
        self.query_one(RunTable).show(runs, snapshot.labels, to_end)
        shown = f"{len(runs):,} of {len(snapshot.runs):,} runs" if words else f"{len(runs):,} runs"
        self.query_one("#title", Static).update(Content(f"{snapshot.title}  {shown}"))
        self.query_one("#heads", Static).update(Content(line(TITLES, self.size.width)))
        self._say_chosen()

    @on(RunTable.Chosen)
    def _say_chosen(self) -> None:
        """When the chosen run was, and its last column whole: there is little room for it beside the others."""
        run = self.query_one(RunTable).chosen
        snapshot = self._snapshot
        words = NOTHING if snapshot is not None and not snapshot.runs else ""
        if run is not None and snapshot is not None:
            when = f"{local_minute(run.started_at)}, {_duration(run)}"
            words = "  ".join([when, cells(run, snapshot.labels)[-1]])
        self.query_one("#said", Static).update(Content(fitted([words], self.size.width - 2, 3)))

    # keys

    @on(RunTable.Opened)
    def action_open(self) -> None:
        """The charts of the chosen run; the others of the list are a key away there."""
        run = self.query_one(RunTable).chosen
        if run is not None:
            self.app.push_screen(RunChartsScreen.of_run(run.id, self.query_one(RunTable).ids))


def _duration(run: RunLine) -> str:
    if run.started_at is None or run.finished_at is None:
        return "not ended"
    return duration_text((parse_utc(run.finished_at) - parse_utc(run.started_at)).total_seconds())


def _matches(run: RunLine, labels: Mapping[int, str], words: list[str]) -> bool:
    kind = "warm-up" if run.kind == "warmup" else "measured"
    text = f"{labels.get(run.candidate, '')} {run.workload} {kind} {run.state}".lower()
    return all(word in text for word in words)
