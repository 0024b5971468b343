"""The widgets of the Monitor, drawn from one subject."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.text import clean
from store.records import EventRecord
from tui.format import fixed, local_clock, number, rate
from tui.history import Point, growth, latest, rate_now, rates, share_perc, slots, within
from tui.server_text import detail_lines, flow
from tui.subject import Subject
from tui.widgets.gauge import Gauge
from tui.widgets.gpu_panel import GpuPanel

SIDE_W = 48


class MonitorPanel(Vertical):
    """The state, six gauges, the GPUs, the last events: at 80x24 all of it. A wide one adds what is known beside it."""

    DEFAULT_CSS = f"""
    MonitorPanel {{ height: 1fr; }}
    #monitor-state {{ height: auto; max-height: 6; padding: 0 1; margin-bottom: 1; }}
    #monitor-gauges {{ width: 1fr; height: 1fr; }}
    #monitor-events {{ height: 1fr; padding: 0 1; margin-top: 1; }}
    #monitor-side {{ display: none; width: {SIDE_W + 4}; padding: 0 1; border-left: solid $panel; }}
    #monitor-side Static {{ height: auto; }}
    """

    def compose(self) -> ComposeResult:
        yield Static(id="monitor-state", markup=False)
        with Horizontal():
            with Vertical(id="monitor-gauges"):
                yield Gauge("KV cache", "$warning", id="kv")
                yield Gauge("running", "$success", id="running")
                yield Gauge("waiting", "$error", id="waiting")
                yield Gauge("output", "$accent", id="output")
                yield Gauge("prompt", "$accent", id="prompt")
                yield Gauge("requests", "$accent", id="requests")
                yield GpuPanel()
                yield Static(id="monitor-events", markup=False)
            with VerticalScroll(id="monitor-side", can_focus=False):
                yield Static(id="monitor-facts", markup=False)

    def draw(self, subject: Subject) -> None:
        """Show `subject`."""
        self.query_one("#monitor-state", Static).update(self._state(subject))
        self._draw_requests(subject)
        self._draw_tokens(subject)
        gpus = () if subject.gpu_note else subject.series.gpus
        window = subject.look.window_s
        self.query_one(GpuPanel).draw(gpus, subject.end, window, subject.utilization, subject.gpu_note)
        self.query_one("#monitor-events", Static).update(_events(subject.events))
        self.query_one("#monitor-facts", Static).update(detail_lines(subject.facts, SIDE_W))

    def _draw_requests(self, subject: Subject) -> None:
        series, tokens, seqs = subject.series, subject.kv_tokens, subject.max_seqs
        size = f"of {number(tokens)} tokens" if tokens is not None else ""
        most = f"of {number(seqs)} at most" if seqs is not None else ""
        reasons = series.waiting_by_reason[:2] if subject.answers else ()
        why = " · ".join(f"{clean(reason, 12)} {number(count)}" for reason, count in reasons)
        kv = fixed(latest(series.kv_perc), 7, 1, " %")
        self._gauge("kv", subject, series.kv_perc, kv, size, top=100.0)
        self._gauge("running", subject, series.running, fixed(latest(series.running), 7), most, top=seqs)
        self._gauge("waiting", subject, series.waiting, fixed(latest(series.waiting), 7), why)

    def _draw_tokens(self, subject: Subject) -> None:
        series, window = subject.series, subject.look.window_s
        hits = share_perc(within(series.prefix_hits, window), within(series.prefix_queries, window))
        lately = growth(within(series.preemptions, 60.0)) if subject.answers else None
        preempted = fixed(latest(series.preemptions), 7) + (f" +{number(lately)}/min" if lately else "")
        for name, counter, note in (
            ("output", series.generation_tokens, f"prefix hits {fixed(hits, 9, 1, ' %')}"),
            ("prompt", series.prompt_tokens, f"preempted   {preempted}"),
            ("requests", series.requests, f"finished {fixed(latest(series.requests), 10)}"),
        ):
            self._gauge(name, subject, rates(counter), rate(rate_now(counter)), note)

    def _gauge(
        self, name: str, subject: Subject, points: Sequence[Point], value: str, note: str, top: float | None = None
    ) -> None:
        """A value of another time than now is none."""
        gauge = self.query_one(f"#{name}", Gauge)
        history = slots(points, subject.end, subject.look.window_s, gauge.slots)
        gauge.set(value if subject.answers else fixed(None, 7), history, note, top)

    def _state(self, subject: Subject) -> Content:
        if subject.state is None:
            return Content.assemble(
                ("○ no server runs. ", "bold"),
                "1 Servers starts one; llmtune monitor --url URL watches one that is not ours.",
            )
        look, room = subject.look, self.size.width - 2
        left = Content("  ").join([subject.state, *(Content(word) for word in subject.words)])
        mode = Content.styled("‖ frozen", "bold reverse") if look.frozen else subject.mode
        right = Content.assemble(
            (f"every {subject.interval_s:g} s  last {look.window_s / 60:g} min  ", "$text-muted"), mode
        )
        others = f"{look.places} servers, s next" if look.places > 1 else ""
        lines = [left]
        if left.cell_length + right.cell_length + len(others) + 4 <= room:
            gap = room - left.cell_length - right.cell_length - len(others) - 2
            lines = [Content.assemble(left, "  ", (others, "$text-muted"), " " * gap, right)]
        else:
            gap = max(1, room - len(others) - right.cell_length)
            lines.append(Content.assemble((others, "$text-muted"), " " * gap, right))
        if subject.trouble:
            lines.append(Content.assemble(("✗ ", "bold $error"), clean(subject.trouble, 300)))
        if subject.stages:
            lines.append(flow(subject.stages, room))
        return Content("\n").join(lines)


def _events(events: tuple[EventRecord, ...]) -> Content:
    """The newest first: on a short screen the oldest fall off."""
    lines = []
    for event in reversed(events):
        colour = {"info": "", "warning": "$warning", "error": "$error"}[event.level]
        lines.append(Content.assemble((f"{local_clock(event.at)}  ", "$text-muted"), (clean(event.text, 200), colour)))
    return Content("\n").join(lines)
