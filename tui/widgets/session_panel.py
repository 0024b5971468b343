"""A session while it runs, and after: where it stands, its verdict in a sentence, a table a workload, notes, cost."""

import textwrap

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from tui.format import local_clock
from tui.metric_text import next_metric
from tui.tune import plot_view, tune_lines, tune_table, verdict_cells
from tui.tune.tune_view import TuneView, serve_line
from tui.widgets.late import Late
from tui.widgets.picture import Picture
from tui.widgets.progress_line import ProgressLine
from tui.widgets.results_table import ResultsTable
from tuning.records import Candidate

BOTH_FROM = (120, 36)
"""Columns and lines from which two workloads are shown at once."""


ROOMY_LINES = 30
SENTENCE_LINES = 3  # of the verdict, at most
SAID_LINES = 2  # of what is said of the chosen candidate


class SessionPanel(Vertical, Late):
    """Shows one TuneView. `workload` and `metric` choose what the first table holds."""

    DEFAULT_CSS = """
    SessionPanel { height: 1fr; }
    SessionPanel > Static { padding: 0 1; height: auto; }
    SessionPanel .one { height: 1; }
    SessionPanel .title { color: $text-muted; height: 1; }
    SessionPanel #sentence { text-style: bold; }
    SessionPanel #found, SessionPanel #limited { height: auto; }
    SessionPanel #command { color: $text-muted; max-height: 1; }
    SessionPanel #why { height: auto; max-height: 4; padding: 0 1; scrollbar-size-vertical: 1; }
    SessionPanel #why Static { height: auto; }
    SessionPanel #why:focus { background: $panel; }
    SessionPanel.-calm #why { display: none; }
    SessionPanel #below { height: 1fr; padding: 0 1; }
    SessionPanel #events { width: 1fr; height: 1fr; color: $text-muted; }
    SessionPanel #picture { width: 1fr; height: 1fr; display: none; }
    SessionPanel.-drawn #picture { display: block; }
    SessionPanel ResultsTable { max-height: 36%; }
    SessionPanel.-calm ResultsTable { max-height: 50%; }
    SessionPanel.-roomy ResultsTable { max-height: 50%; }
    SessionPanel.-both ResultsTable { max-height: 35%; }
    SessionPanel.-roomy #below { min-height: 4; }
    SessionPanel.-roomy #why { max-height: 8; }
    SessionPanel.-roomy #command { max-height: 4; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view: TuneView | None = None
        self.workload = ""
        self.metric: str | None = None  # None: the one that decides
        self._drawn: object = None

    def compose(self) -> ComposeResult:
        yield Static("", id="session", classes="one", markup=False)
        yield Static("", id="decide", classes="one title", markup=False)
        yield ProgressLine(id="progress")
        yield Static("", id="sentence", markup=False)
        yield Static("", id="first-title", classes="title", markup=False)
        yield ResultsTable(id="first")
        yield Static("", id="second-title", classes="title", markup=False)
        yield ResultsTable(id="second")
        yield Static("", id="found", markup=False)
        with VerticalScroll(id="why"):
            yield Static("", id="failures", markup=False)
        yield Static("", id="noise", classes="one", markup=False)
        yield Static("", id="cost", classes="one", markup=False)
        yield Static("", id="limited", markup=False)
        yield Static("", id="command", markup=False)
        with Horizontal(id="below"):
            yield Static("", id="events", markup=False)
            yield Picture(id="picture")

    def on_resize(self) -> None:
        self.set_class(self.size.height >= ROOMY_LINES, "-roomy")
        if self._view is not None:
            self.show(self._view)

    @property
    def view(self) -> TuneView | None:
        """What is shown now."""
        return self._view

    @property
    def candidate(self) -> Candidate | None:
        """The candidate under the cursor of the table that has the focus, else of the first."""
        second = self.query_one("#second", ResultsTable)
        index = (second if second.has_focus else self.query_one("#first", ResultsTable)).candidate
        if self._view is None or index is None:
            return None
        return next((one for one in self._view.candidates if one.index == index), None)

    def next_workload(self) -> None:
        """Show the next workload first."""
        if self._view is not None and self._view.workloads:
            names = self._view.workloads
            at = names.index(self.workload) if self.workload in names else -1
            self.workload = names[(at + 1) % len(names)]
            self.show(self._view)

    def next_metric(self, step: int) -> None:
        """Show another metric, the next or the one before."""
        if self._view is not None:
            self.metric = next_metric(self.metric or self._view.result.metric.get(self.workload, ""), step)
            self.show(self._view)

    def show(self, view: TuneView) -> None:
        """Bring every line and cell to this view."""
        another = self._view is None or self._view.session.id != view.session.id
        if another:
            self.metric = None
        self._view = view
        names = view.workloads
        if self.workload not in names:
            self.workload = names[0] if names else ""
        wide = self.size.width >= BOTH_FROM[0]
        both = wide and self.size.height >= BOTH_FROM[1] - 4 and len(names) > 1
        self._say("session", tune_lines.session_line(view, self.size.width - 2))
        self._fold("decide", tune_lines.decide_line(view), 1)
        self.query_one(ProgressLine).show(tune_lines.progress(view), tune_lines.now_line(view))
        self._fold("sentence", verdict_cells.sentence(view), SENTENCE_LINES)
        self._table("first", self.workload)
        if both:
            self._table("second", names[(names.index(self.workload) + 1) % len(names)])
        judgement = view.result.judgement
        if another and judgement is not None and judgement.winner is not None:
            self.query_one("#first", ResultsTable).choose(judgement.winner)
        self.set_class(both, "-both")
        self.query_one("#second").display = self.query_one("#second-title").display = both
        failures = [*tune_lines.failure_lines(view), *verdict_cells.note_lines(view)]
        self._say("failures", "\n".join(failures))
        self.set_class(not failures, "-calm")
        self._accounts(verdict_cells.noise_line(view, self.workload), tune_lines.cost_line(view))
        self.show_chosen()
        events = [f"{local_clock(event.at)}  {clean(event.text, 300)}" for event in reversed(view.events)]
        self._say("events", "\n".join(events))
        self.set_class(wide and self.size.height >= ROOMY_LINES, "-drawn")
        self._draw()

    def show_chosen(self) -> None:
        """What was found of the chosen candidate, what limited its runs, and its whole command line."""
        view, chosen = self._view, self.candidate
        found = verdict_cells.candidate_line(view, self.workload, chosen.index) if view and chosen else ""
        limited = tune_lines.limited_line(view, self.workload, chosen.index) if view and chosen else ""
        lines = SAID_LINES if self.has_class("-roomy") or self.has_class("-calm") else 1
        self._fold("found", found, SAID_LINES)
        self._fold("limited", limited, lines)
        words = serve_line(view.plan, chosen) if view and view.plan and chosen else ""
        self._say("command", words)

    def _accounts(self, noise: str, cost: str) -> None:
        """Noise and cost, on one line where both fit."""
        together = f"{noise}   {cost}" if noise else cost
        one = len(together) <= self.size.width - 2
        self._say("noise", together if one else noise)
        self._say("cost", "" if one else cost)
        self.query_one("#cost").display = not one

    def _fold(self, name: str, words: str, lines: int) -> None:
        """So many lines of it at most, its end an ellipsis; without words no line."""
        wrapped = textwrap.wrap(words, max(20, self.size.width - 2), max_lines=lines, placeholder=" …")
        self._say(name, "\n".join(wrapped))
        self.query_one(f"#{name}").display = bool(words)

    def _table(self, name: str, workload: str) -> None:
        view = self._view
        if view is None:
            return
        metric = self.metric or view.result.metric.get(workload, "total_tok_per_s")
        self._say(f"{name}-title", tune_table.table_title(view, workload, metric))
        self.query_one(f"#{name}", ResultsTable).show(tune_table.table(view, workload, metric, self.size.width))

    def _draw(self) -> None:
        """The first table's metric as a picture, where there is room and only when it changed."""
        view = self._view
        if view is None or not self.has_class("-drawn"):
            return
        metric = self.metric or view.result.metric.get(self.workload, "total_tok_per_s")
        drawn = (view.result.results, self.workload, metric)
        if drawn != self._drawn:
            found = plot_view.plot(view, self.workload, metric, plot_view.LAUNCHES)
            self.query_one(Picture).draw(found.series, found.axes)
            self._drawn = drawn

    def _say(self, name: str, words: str) -> None:
        self.query_one(f"#{name}", Static).update(Content(words))
