"""Any run, or the whole life of a server, as charts: GPU, scheduler and load on one time axis."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from store.errors import StoreError
from tui.format import span
from tui.legend import Number
from tui.palette import Command
from tui.runs.run_charts import Mark
from tui.runs.run_export import export_samples
from tui.runs.run_source import ChartsSource, ChartsView, RunSource, ServerSource
from tui.screens.base import LlmtuneScreen
from tui.widgets.chart_stack import ChartStack
from tui.widgets.copy import CopyPanel

if TYPE_CHECKING:
    from store.reader import Reader
    from tui.app import LlmtuneApp

SAID, SAID_TALL = 3, 5  # lines for why a run does not count and what limited it


def open_history(app: "LlmtuneApp", server_id: int) -> None:
    """Show the whole life of one of our servers."""
    app.push_screen(RunChartsScreen.of_server(server_id))


def fitted(said: Sequence[str], width: int, lines: int) -> str:
    """Sentences in no more than so many lines, the last cut with an ellipsis."""
    wrapped: list[str] = []
    for at, words in enumerate(said):
        room = lines - len(wrapped) - (len(said) - at - 1)
        wrapped += textwrap.wrap(words, max(20, width), max_lines=max(1, room), placeholder=" …")
    return "\n".join(wrapped[:lines])


class RunChartsScreen(LlmtuneScreen):
    """Panels under each other; a cursor shows the values at a moment. What still runs is followed."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("mean, max", "over the load of the run, or the server's life; with a cursor the value at that moment"),
        Number(
            "axis", "minutes:seconds from where the run's load began, or from when the server was ready; c: the clock"
        ),
        Number("KV cache", "share of the KV cache in use, 0 to 100 %"),
        Number("requests", "● being computed, ▲ waiting to be; ┈ max-num-seqs where it is near"),
        Number("preemptions", "requests thrown out of a full cache, per second"),
        Number("tokens", "per second between two samples: ● generated, ▲ prompt tokens computed or found in the cache"),
        Number("finished", "requests answered per second, whatever the reason"),
        Number(
            "TTFT", "time to first token of those that got it since the point before; < where a bucket is all we know"
        ),
        Number("GPU memory", "GiB (2^30 bytes) over the server's GPUs; ┈ what gpu-memory-utilization allows"),
        Number("GPU power", "watts over them; ┈ their limit"),
        Number("GPU clock", "MHz of the SMs, of several GPUs the slowest; ▲ when the driver held one back, and why"),
        Number("▶ ■", "the load began, and ended; of a server: it was ready, and ended"),
        Number(
            "s w r e", "the run began to make its prompts; another warm-up, measured run began on this server; it ended"
        ),
        Number("p x ? ! i", "preemptions began; the server started anew; gave no answer; a warning; an event"),
        Number("breaks", "nothing was sampled or it could not be read; no rate leads through a restart"),
        Number("old samples", "thinned to one in 10 s or a minute: the peak in it stands for KV, requests and memory"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,down", "group(1)", "panels", tooltip="scheduler, load, GPU, where they have no room at once"),
        Binding("shift+tab,up", "group(-1)", show=False),
        Binding("right", "cursor(1)", "cursor", key_display="←→", tooltip="values at a moment; shift: ten at a time"),
        Binding("left", "cursor(-1)", show=False),
        Binding("shift+right", "cursor(10)", show=False),
        Binding("shift+left", "cursor(-10)", show=False),
        Binding("m", "mark", "mark", show=False, tooltip="the cursor to the next thing that happened"),
        Binding("left_square_bracket,p", "run(-1)", show=False),
        Binding("right_square_bracket,n", "run(1)", "run", key_display="[ ]", tooltip="the run before, the next"),
        Binding("w", "whole", "server", tooltip="the life of the server that the run was made on"),
        Binding("c", "clock", "clock", show=False, tooltip="seconds from zero, or the time of day"),
        Binding("e", "export", "export", tooltip="write the samples as CSV to the exports folder"),
        Binding("y", "copy", "copy", tooltip="the run's benchmark command; with a cursor the values there"),
        Binding("escape", "back", "back"),
    ]

    DEFAULT_CSS = """
    RunChartsScreen #title { height: 1; padding: 0 1; }
    RunChartsScreen #said { height: auto; max-height: 3; padding: 0 1; color: $text-muted; display: none; }
    RunChartsScreen #said.-said { display: block; }
    RunChartsScreen.-tall #said { max-height: 5; }
    RunChartsScreen #said.-bad { color: $error; }
    RunChartsScreen #moment { height: 1; padding: 0 1; }
    """

    def __init__(self, source: ChartsSource, runs: Sequence[int] = ()) -> None:
        """`runs` are the ids of the list that this one was opened from: the way to the next."""
        super().__init__()
        self._source = source
        self._runs = tuple(runs)
        self._view: ChartsView | None = None

    @classmethod
    def of_run(cls, run_id: int, runs: Sequence[int] = ()) -> Self:
        """The charts of one run."""
        return cls(RunSource(run_id), runs)

    @classmethod
    def of_server(cls, server_id: int) -> Self:
        """The charts of a server's whole life."""
        return cls(ServerSource(server_id))

    def compose_body(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield Static("", id="said", markup=False)
        yield ChartStack(id="charts")
        yield Static("", id="moment", markup=False)

    # feeding

    def refresh_from_store(self, reader: "Reader") -> ChartsView:
        """The run as it stands; one that is over is not read again."""
        return self._source.read(reader)

    def show(self, snapshot: ChartsView) -> None:
        """Draw what is new."""
        before = self._view
        if snapshot is before:
            return
        self._view = snapshot
        self._say_what_it_is(snapshot)
        self.query_one(ChartStack).show(snapshot.charts)
        self._say_moment()
        if before is None:
            self.refresh_bindings()

    def redraw(self) -> None:
        """In another size there is room for more or fewer words and keys."""
        if self._view is not None:
            self._say_what_it_is(self._view)
        self._say_moment()
        self.refresh_bindings()

    def _say_what_it_is(self, view: ChartsView) -> None:
        """Which run, how it ended, what limited it."""
        self.query_one("#title", Static).update(Content(view.title).truncate(self.size.width - 2, ellipsis=True))
        said = self.query_one("#said", Static)
        lines = SAID_TALL if self.has_class("-tall") else SAID
        said.update(Content(fitted(view.said, self.size.width - 2, lines)))
        said.set_class(bool(view.said), "-said")
        said.set_class(view.bad, "-bad")

    @on(ChartStack.Moved)
    def _say_moment(self) -> None:
        """The cursor's moment and what happened there; without one, the newest that happened."""
        view, stack = self._view, self.query_one(ChartStack)
        if view is None:
            return
        if stack.cursor is None:
            marks = view.charts.marks
            words = "   ".join(f"{mark.glyph} {_moment(mark.at)} {mark.words}" for mark in marks)
            text = Content(words or f"{view.charts.samples} samples")
        else:
            clock = stack.time_of(stack.cursor).strftime("%H:%M:%S")
            near = _near(view.charts.marks, stack.cursor, stack.step)
            text = Content.assemble(
                (f"at {_moment(stack.cursor)}", "bold"),
                f"  {clock}",
                *(f"   {mark.glyph} {mark.words}" for mark in near),
            )
        self.query_one("#moment", Static).update(text.truncate(self.size.width - 2, ellipsis=True))

    def commands(self) -> tuple[Command, ...]:
        """What can be done with the run, or the server."""
        view = self._view
        if view is None:
            return ()
        commands = [Command("Copy", "The command line; with a cursor the values there", self.action_copy)]
        if view.server_id is not None:
            commands.append(Command("Export the samples", "CSV of the time that is shown", self.action_export))
        if self.check_action("whole", ()):
            commands.append(Command("The whole server", "All that was sampled of it", self.action_whole))
        return tuple(commands)

    # keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that would do something."""
        view = self._view
        if action == "run":
            return len(self._runs) > 1
        if action == "whole":
            return isinstance(self._source, RunSource) and view is not None and view.server_id is not None
        if action == "group":
            return not self.query_one(ChartStack).shows_all if self.is_up else False
        return True

    def action_group(self, step: int) -> None:
        """Other panels."""
        self.query_one(ChartStack).next_group(step)

    def action_cursor(self, columns: int) -> None:
        """Move the cursor, which is put there first."""
        self.query_one(ChartStack).move(columns)
        self._say_moment()

    def action_mark(self) -> None:
        """The cursor to what happened next, round and round."""
        stack = self.query_one(ChartStack)
        if self._view is not None and self._view.charts.marks:
            moments = [mark.at for mark in self._view.charts.marks]
            after = stack.cursor if stack.cursor is not None else float("-inf")
            stack.put(next((at for at in moments if at > after + stack.step / 2), moments[0]))
            self._say_moment()

    def action_clock(self) -> None:
        """Seconds or the time of day under the axis."""
        self.query_one(ChartStack).turn_clock()

    def action_run(self, step: int) -> None:
        """The run before or after this one in the list."""
        if not isinstance(self._source, RunSource) or self._source.run_id not in self._runs:
            return
        at = self._runs.index(self._source.run_id) + step
        if not 0 <= at < len(self._runs):
            self.say("that is the last run of the list" if step > 0 else "that is the first run of the list")
            return
        self._source, self._view = RunSource(self._runs[at]), None
        self.query_one(ChartStack).put(None)
        self.app.ask()

    def action_whole(self) -> None:
        """The life of the run's server."""
        if self._view is not None and self._view.server_id is not None:
            open_history(self.app, self._view.server_id)

    def action_copy(self) -> None:
        """The command line; with a cursor, the values at its moment."""
        view, stack = self._view, self.query_one(ChartStack)
        if view is None:
            return
        if stack.cursor is not None:
            self.app.push_screen(CopyPanel("\n".join([view.title, *stack.values()]), "values"))
        elif view.command:
            self.app.push_screen(CopyPanel(view.command, "command line"))
        else:
            self.say("there is no command line: the plan or the server is no longer in the store")

    def action_export(self) -> None:
        """All samples of the time that is shown, to a file."""
        if self._view is not None and self._view.server_id is not None:
            self._export(self.app.data_dir, self._source.name, self._view)

    @work(thread=True, group="export", description="writes samples")
    def _export(self, data_dir: Path, name: str, view: ChartsView) -> None:
        assert view.server_id is not None
        try:
            path, count = export_samples(data_dir, name, view.server_id, *view.span)
        except (StoreError, OSError) as error:
            self.later(self.say, f"not exported: {error}", True)
        else:
            self.later(self.say, f"{count} samples written: {path}")

    def action_back(self) -> None:
        """Take the cursor away, then leave."""
        stack = self.query_one(ChartStack)
        if stack.cursor is not None:
            stack.put(None)
            self._say_moment()
        else:
            super().action_back()


def _moment(seconds: float) -> str:
    return f"−{span(-seconds)}" if seconds < 0 else span(seconds)


def _near(marks: Sequence[Mark], moment: float, within: float) -> list[Mark]:
    return [mark for mark in marks if abs(mark.at - moment) <= within]
