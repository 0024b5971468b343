"""The widgets of the Monitor, drawn from one subject."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from store.records import EventRecord
from tui.format import fixed, local_clock, number, rate
from tui.history import Point, Series, growth, latest, rate_now, rates, share_perc, slots, within
from tui.subject import Subject
from tui.widgets.gauge import Gauge
from tui.widgets.gpu_panel import GpuPanel


class MonitorPanel(Vertical):
    """The state, six gauges, the GPUs, the last events. At 80x24 all of it is on the screen."""

    DEFAULT_CSS = """
    MonitorPanel { height: 1fr; }
    #monitor-state { height: auto; max-height: 4; padding: 0 1; margin-bottom: 1; }
    #monitor-window { height: 1; padding: 0 1; color: $text-muted; margin-top: 1; }
    #monitor-events { height: 1fr; padding: 0 1; margin-top: 1; }
    """

    def compose(self) -> ComposeResult:
        yield Static(id="monitor-state", markup=False)
        yield Gauge("KV cache", "$warning", id="kv")
        yield Gauge("running", "$success", id="running")
        yield Gauge("waiting", "$error", id="waiting")
        yield Gauge("output", "$accent", id="output")
        yield Gauge("prompt", "$accent", id="prompt")
        yield Gauge("requests", "$accent", id="requests")
        yield GpuPanel()
        yield Static(id="monitor-events", markup=False)

    def draw(self, subject: Subject) -> None:
        """Show `subject`."""
        self.query_one("#monitor-state", Static).update(self._state(subject))
        series, window = subject.series, subject.window_s
        prefix = share_perc(within(series.prefix_hits, window), within(series.prefix_queries, window))
        preempted = within(series.preemptions, 60.0)
        self._gauge("kv", subject, series.kv_perc, fixed(latest(series.kv_perc), 7, 1, " %"), _size(subject), top=100.0)
        self._gauge(
            "running",
            subject,
            series.running,
            fixed(latest(series.running), 7),
            f"of {number(subject.max_seqs)} at most" if subject.max_seqs is not None else "",
            top=subject.max_seqs,
        )
        self._gauge("waiting", subject, series.waiting, fixed(latest(series.waiting), 7), _reasons(series))
        self._gauge(
            "output",
            subject,
            rates(series.generation_tokens),
            rate(rate_now(series.generation_tokens)),
            f"prefix hits {fixed(prefix, 9, 1, ' %')}",
        )
        self._gauge(
            "prompt",
            subject,
            rates(series.prompt_tokens),
            rate(rate_now(series.prompt_tokens)),
            f"preempted   {fixed(latest(series.preemptions), 7)}{_per_minute(growth(preempted))}",
        )
        self._gauge(
            "requests",
            subject,
            rates(series.requests),
            rate(rate_now(series.requests)),
            f"finished {fixed(latest(series.requests), 10)}",
        )
        self.query_one(GpuPanel).draw(series.gpus, subject.now.timestamp(), window, subject.gpu_note)
        self.query_one("#monitor-events", Static).update(_events(subject.events))

    def _gauge(
        self,
        name: str,
        subject: Subject,
        points: list[Point] | tuple[Point, ...],
        value: str,
        note: str,
        top: float | None = None,
    ) -> None:
        gauge = self.query_one(f"#{name}", Gauge)
        gauge.set(value, slots(points, subject.now.timestamp(), subject.window_s, gauge.slots), note, top)

    def _state(self, subject: Subject) -> Content:
        if subject.state is None:
            return Content.assemble(
                ("○ no server runs. ", "bold"),
                "1 Servers starts one; llmtune monitor --url URL watches one that is not ours.",
            )
        left = Content("  ").join([subject.state, *(Content(word) for word in subject.words)])
        mode = Content.styled("‖ frozen", "bold reverse") if subject.frozen else Content.styled("▶ live", "$success")
        right = Content.assemble(
            (f"every {subject.interval_s:g} s  last {subject.window_s / 60:g} min  ", "$text-muted"), mode
        )
        room = self.size.width - 2
        lines = [left]
        if left.cell_length + right.cell_length + 2 <= room:
            lines = [Content.assemble(left, " " * (room - left.cell_length - right.cell_length), right)]
        else:
            others = f"1 of {subject.places} servers, s next" if subject.places > 1 else ""
            gap = " " * max(1, room - len(others) - right.cell_length)
            lines.append(Content.assemble((others, "$text-muted"), gap, right))
        if subject.trouble:
            lines.append(Content.assemble(("✗ ", "bold $error"), clean(subject.trouble, 200)))
        return Content("\n").join(lines)


def _size(subject: Subject) -> str:
    return f"of {number(subject.kv_tokens)} tokens" if subject.kv_tokens is not None else ""


def _reasons(series: Series) -> str:
    return " · ".join(f"{clean(why, 12)} {number(count)}" for why, count in series.waiting_by_reason[:2])


def _per_minute(grown: float | None) -> str:
    return "" if not grown else f" +{number(grown)}/min"


def _events(events: tuple[EventRecord, ...]) -> Content:
    """The newest first: on a short screen the oldest fall off."""
    lines = []
    for event in reversed(events):
        colour = {"info": "", "warning": "$warning", "error": "$error"}[event.level]
        lines.append(Content.assemble((f"{local_clock(event.at)}  ", "$text-muted"), (clean(event.text, 200), colour)))
    return Content("\n").join(lines)
