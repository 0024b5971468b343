"""What the charts of a run, or of a server's life, are made from. Reads on the poller's thread, anew only what may have
changed: a run that is over is read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from engine.launch.command import copyable
from engine.limiting.knobs import knobs_of
from engine.text import clean
from store.clock import format_utc, parse_utc, unix_seconds, utc_now
from store.errors import NotFound
from store.records import (
    ACTIVE_SERVER_STATES,
    LaunchRecord,
    RunRecord,
    SampleRecord,
    ServerRecord,
    SessionRecord,
)
from tui.chart import finite
from tui.runs.run_charts import Charts, Mark, charts
from tui.runs.run_words import bench_command, event_marks, found_words, load_marks, run_marks, run_title

if TYPE_CHECKING:
    from store.reader import Reader, RunLine

OF_RUN, OF_SERVER = 600, 320  # samples that are read at most; a terminal of 140 columns has 240 dots on its time axis
FOLLOW_S, SLOWEST_S = 2.0, 10.0  # how often what still runs is read; a long history, which a sample hardly changes
MARGIN_S, MARGIN_SHARE = 3.0, 0.04  # what is shown before and after a run
EVENTS = 200  # marked at most, the newest


@dataclass(frozen=True, slots=True)
class ChartsView:
    """`title` and `said` are lines for a person (why it was rejected, what limited it), `bad` says that the first of
    `said` is why it does not count. `command` is what can be copied, `span` the part of the store that is drawn."""

    title: str
    charts: Charts
    said: tuple[str, ...] = ()
    bad: bool = False
    command: str = ""
    server_id: int | None = None
    span: tuple[str, str] = ("", "")
    live: bool = False


class ChartsSource(Protocol):
    """Where a screen of charts reads from; `name` is what a file of it is called."""

    name: str

    def read(self, reader: "Reader") -> ChartsView:
        """What is to be shown now, the same object while nothing changed. Raises StoreError."""


class _Samples:
    """One server's samples in a range, kept and added to."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._kept: list[SampleRecord] = []

    def read(self, reader: "Reader", server_id: int, since: str | None, until: str | None) -> list[SampleRecord]:
        """Those after `since`, not after `until`; of many, as many as a picture can show."""
        if not self._kept or len(self._kept) > 2 * self._at_most:
            self._kept = reader.samples(server_id=server_id, since=since, until=until, at_most=self._at_most)
        else:
            self._kept += reader.samples(server_id=server_id, since=self._kept[-1].at, until=until)
        return self._kept


class RunSource:
    """The charts of one run of a session, with some seconds before and after it. Zero is where its load began."""

    def __init__(self, run_id: int) -> None:
        self.name = f"run-{run_id}"
        self.run_id = run_id
        self._samples = _Samples(OF_RUN)
        self._view: ChartsView | None = None
        self._read_at = 0.0
        self._around: tuple[SessionRecord, LaunchRecord, ServerRecord | None] | None = None
        self._others: tuple[RunLine, ...] = ()

    def read(self, reader: "Reader") -> ChartsView:
        if self._view is not None and not _due(self._view, self._read_at):
            return self._view
        self._read_at = monotonic()
        run = reader.run(self.run_id)
        if self._around is None:
            launch = reader.launch(run.launch_id)
            self._around = reader.session(run.session_id), launch, _server(reader, launch.server_id)
            lines = reader.run_lines(run.session_id)
            self._others = tuple(one for one in lines if one.launch_id == run.launch_id and one.id != run.id)
        self._view = self._made(reader, run, *self._around)
        return self._view

    def _made(
        self,
        reader: "Reader",
        run: RunRecord,
        session: SessionRecord,
        launch: LaunchRecord,
        server: ServerRecord | None,
    ) -> ChartsView:
        live = run.state == "running"
        begun = run.started_at or launch.ready_at or launch.started_at or session.created_at
        ended = None if live else run.finished_at
        margin = MARGIN_S
        if ended is not None:
            margin = max(MARGIN_S, MARGIN_SHARE * (unix_seconds(ended) - unix_seconds(begun)))
        since, until = _moved(begun, -margin), None if ended is None else _moved(ended, margin)
        number = None if server is None else server.id
        samples = [] if number is None else self._samples.read(reader, number, since, until)
        last = samples[-1].at if samples else begun
        if self._view is not None and live and self._view.span[1] == last:
            return self._view
        zero = load_began(run)
        own = (0.0, max(0.0, unix_seconds(ended or last) - zero))
        # what was sampled ends the picture, not the margin that was asked for
        first = unix_seconds(samples[0].at) if samples else zero
        span = min(first - zero, -0.5), max(unix_seconds(last) - zero, own[1]) + 0.5
        marks = load_marks(unix_seconds(begun) - zero, None if live else own[1])
        marks += run_marks(self._others, zero, ends=True)
        if number is not None:
            marks += event_marks(reader.events(server_id=number, limit=EVENTS), zero)
        return ChartsView(
            run_title(session, run),
            charts(samples, zero, span, own, marks, _max_num_seqs(server, samples)),
            (*found_words(run), *((clean(run.limited_by, 400),) if run.limited_by else ())),
            bad=run.reason is not None,
            command=bench_command(session, run, server),
            server_id=number,
            span=(since, until or last),
            live=live,
        )


def _max_num_seqs(server: ServerRecord | None, samples: Sequence[SampleRecord]) -> float | None:
    return None if server is None else finite(knobs_of(server, samples[-1] if samples else None).max_num_seqs.value)


class ServerSource:
    """The charts of a server's whole life, with the runs that were made on it. Zero is when it was ready."""

    def __init__(self, server_id: int) -> None:
        self.name = f"server-{server_id}"
        self._server_id = server_id
        self._samples = _Samples(OF_SERVER)
        self._view: ChartsView | None = None
        self._read_at = 0.0

    def read(self, reader: "Reader") -> ChartsView:
        if self._view is not None and not _due(self._view, self._read_at):
            return self._view
        self._read_at = monotonic()
        server = reader.server(self._server_id)
        samples = self._samples.read(reader, self._server_id, None, None)
        live = server.state in ACTIVE_SERVER_STATES
        if self._view is not None and samples and self._view.span[1] == samples[-1].at and live:
            return self._view
        begun = server.ready_at or server.started_at or (samples[0].at if samples else utc_now())
        zero = unix_seconds(begun)
        first, last = (samples[0].at, samples[-1].at) if samples else (begun, begun)
        span = unix_seconds(first) - zero - 0.5, max(unix_seconds(last), zero) - zero + 0.5
        marks = [Mark(0.0, "▶", "ready", True)] if server.ready_at else []
        if server.stopped_at:
            words = "ended" if server.exit_code is None else f"ended, exit code {server.exit_code}"
            marks.append(Mark(min(unix_seconds(server.stopped_at) - zero, span[1]), "■", words, True))
        marks += event_marks(reader.events(server_id=self._server_id, limit=EVENTS), zero)
        marks += self._runs(reader, server, zero)
        self._view = ChartsView(
            f"server {server.id}  {clean(server.name, 40)}  {clean(server.model, 60)}  {server.state}",
            charts(samples, zero, span, span, marks, _max_num_seqs(server, samples)),
            (clean(server.failure, 300),) if server.failure else (),
            bad=server.failure is not None,
            command=copyable(server.command, server.env) if server.command else "",
            server_id=self._server_id,
            span=("", last),
            live=live,
        )
        return self._view

    def _runs(self, reader: "Reader", server: ServerRecord, zero: float) -> list[Mark]:
        """A mark for each run that was made on it."""
        if server.session_id is None:
            return []
        launches = {one.id for one in reader.launches(server.session_id) if one.server_id == server.id}
        return run_marks([run for run in reader.run_lines(server.session_id) if run.launch_id in launches], zero)


def load_began(run: RunRecord) -> float:
    """Unix seconds at which a run's load began: as the benchmark told it, else its duration before the end."""
    told = run.raw.get("load_started_at")
    if isinstance(told, str):
        return unix_seconds(told)
    begun = unix_seconds(run.started_at) if run.started_at else 0.0
    result = run.raw.get("result")
    duration = finite(result.get("duration")) if isinstance(result, Mapping) else None
    if run.finished_at is None or duration is None:
        return begun
    return max(begun, unix_seconds(run.finished_at) - duration)


def _due(view: ChartsView, read_at: float) -> bool:
    """Whether to read again: never what is over, seldom what a new sample hardly changes."""
    begin, end = view.charts.span
    every = max(FOLLOW_S, min((end - begin) / OF_SERVER, SLOWEST_S))
    return view.live and monotonic() - read_at >= every


def _server(reader: "Reader", server_id: int | None) -> ServerRecord | None:
    try:
        return None if server_id is None else reader.server(server_id)
    except NotFound:
        return None


def _moved(at: str, seconds: float) -> str:
    return format_utc(parse_utc(at) + timedelta(seconds=seconds))
