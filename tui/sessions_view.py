"""The list of sessions as lines. Pure but for `SessionsSource.read`, which runs on the poller's thread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from engine.text import clean
from store.clock import parse_utc, utc_now
from store.errors import NotFound
from store.records import SessionRecord
from tui.metric_text import ratio
from tui.tune_source import ViewSource
from tui.tune_view import LIVE_STATES, TuneView, state_word
from tuning.records import SessionResult
from tuning.schedule import baseline_launches

if TYPE_CHECKING:
    from store.reader import Reader, SessionProgress

TITLES = ("id", "name", "state", "cand.", "runs", "begun", "outcome")


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session of the list: its cells in the order of TITLES, and what the filter looks in."""

    id: int
    name: str
    state: str
    cells: tuple[str, ...]
    haystack: str


@dataclass(frozen=True, slots=True)
class SessionsSnapshot:
    """All sessions, the newest first; `chosen` is the one under the cursor, `view` all of it."""

    lines: tuple[SessionLine, ...]
    chosen: int | None = None
    view: TuneView | None = None

    @property
    def said(self) -> str:
        """What came of the chosen session."""
        if self.view is None:
            return ""
        message = self.view.session.message
        return ". ".join([outcome(self.view.result), *([clean(message, 200)] if message else [])])


class SessionsSource:
    """Reads the list when something was committed, and the results of the chosen session alone."""

    def __init__(self, alive: Callable[[int], bool], views: ViewSource | None = None) -> None:
        self._alive = alive
        self._views = views or ViewSource()
        self._seen: int | None = None
        self._made: dict[int, tuple[SessionRecord, SessionLine]] = {}
        self._last = SessionsSnapshot(())

    def read(self, reader: "Reader", chosen: int | None) -> SessionsSnapshot:
        """The same object as before where nothing changed."""
        version, lines = reader.version(), self._last.lines
        # A keeper that dies commits nothing, so a session that goes on is looked at each time.
        if version != self._seen or any(line.state in LIVE_STATES for line in lines):
            lines = self._lines(reader)
            lines = self._last.lines if lines == self._last.lines else lines
        view = self._view(reader, chosen)
        if lines is not self._last.lines or chosen != self._last.chosen or view is not self._last.view:
            self._last = SessionsSnapshot(lines, chosen, view)
        self._seen = version
        return self._last

    def _lines(self, reader: "Reader") -> tuple[SessionLine, ...]:
        """The lines, made anew only of sessions that go on or have changed."""
        sessions = reader.sessions()
        changed = {
            one.id or 0
            for one in sessions
            if one.state in LIVE_STATES or self._made.get(one.id or 0, (None,))[0] is not one
        }
        counts = reader.progress(sorted(changed)) if changed else {}
        before, self._made = self._made, {}
        for one in reversed(sessions):
            number = one.id or 0
            line = session_line(one, counts.get(number), self._alive) if number in changed else before[number][1]
            self._made[number] = (one, line)
        return tuple(line for _, line in self._made.values())

    def _view(self, reader: "Reader", chosen: int | None) -> TuneView | None:
        if chosen is None:
            return None
        try:
            session = reader.session(chosen)
        except NotFound:
            return None
        return self._views.read(reader, session, self._alive(chosen), utc_now())


def session_line(session: SessionRecord, counts: "SessionProgress | None", alive: Callable[[int], bool]) -> SessionLine:
    """One line, from the record and the counts of its runs and launches."""
    number = session.id or 0
    runs = counts.runs if counts else {}
    planned = planned_runs(session)
    made = min(planned, sum(runs.get(state, 0) for state in ("done", "rejected", "failed")))  # some were made once more
    model = PurePath(str(session.plan.get("model", ""))).name
    state = state_word(session.state, session.state not in LIVE_STATES or alive(number))
    cells = (
        str(number),
        clean(session.name, 17),
        state,
        str(max(0, len(session.candidates) - 1)),
        f"{made}/{planned}",
        parse_utc(session.created_at).astimezone().strftime("%m-%d %H:%M"),
        short_outcome(session, runs, counts.launches if counts else {}),
    )
    haystack = clean(" ".join((str(number), session.name, session.state, model, *cells[5:]))).lower()
    return SessionLine(number, clean(session.name, 60), session.state, cells, haystack)


def planned_runs(session: SessionRecord) -> int:
    """Measured runs that the plan comes to if every candidate stays to the end."""
    plan: Mapping[str, Any] = session.plan
    points = max(0, len(session.candidates) - 1)
    repeats = sum(int(one.get("repeats", 0)) for one in plan.get("workloads", ()))
    blocks = int(plan.get("decide", {}).get("blocks", 0))
    return blocks * (points + baseline_launches(points)) * repeats


def short_outcome(session: SessionRecord, runs: Mapping[str, int], launches: Mapping[str, int]) -> str:
    """What can be said without reading a run: the message, or what failed, or that all went well."""
    if session.message:
        return clean(session.message, 80)
    parts = []
    if launches.get("failed"):
        parts.append(f"{_counted(launches['failed'], 'launch', 'launches')} failed")
    if runs.get("rejected"):
        parts.append(f"{_counted(runs['rejected'], 'run', 'runs')} rejected")
    if parts:
        return ", ".join(parts)
    return "all measured" if session.state == "done" else ""


def outcome(result: SessionResult) -> str:
    """One line for the list of sessions: the best effect measured, said as what it is."""
    best = max(
        (
            (abs(effect.effect), one, effect)
            for one in result.results
            if (effect := one.effects.get(result.metric.get(one.workload, ""))) is not None
            and effect.effect is not None
            and one.candidate.index != 0
        ),
        key=lambda found: found[0],
        default=None,
    )
    if best is None:
        return "no candidate measured against the default yet"
    _, one, effect = best
    return f"largest: {clean(one.candidate.label, 24)} {ratio(effect.effect)} in {clean(one.workload, 16)}"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def matching(lines: tuple[SessionLine, ...], words: str) -> tuple[SessionLine, ...]:
    """The lines that hold every word of the filter."""
    wanted = words.lower().split()
    return tuple(line for line in lines if all(word in line.haystack for word in wanted))
