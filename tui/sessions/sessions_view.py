"""The list of sessions as lines. Pure but for `SessionsSource.read`, which runs on the poller's thread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from time import monotonic
from typing import TYPE_CHECKING, Any

from engine.text import clean
from store.clock import parse_utc, utc_now
from store.errors import NotFound
from store.records import SessionRecord
from tui.tune.tune_source import ViewSource, plan_of_session
from tui.tune.tune_view import LIVE_STATES, TuneView, state_word
from tui.tune.verdict_cells import sentence
from tuning.judgement.judging import judge
from tuning.scheduling.schedule import baseline_launches

if TYPE_CHECKING:
    from store.reader import Reader, SessionProgress

JUDGE_S = 0.05
"""How long a look goes on with sessions that have no verdict kept with them."""
MOST_JUDGED = 20
"""Of such sessions: a screenful of the newest. Reading the runs of hundreds would take minutes."""
TITLES = ("id", "name", "state", "cand.", "runs", "begun", "outcome")


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session of the list: its cells in the order of TITLES, and what the filter looks in."""

    id: int
    name: str
    state: str
    cells: tuple[str, ...]
    haystack: str
    judged: bool = False  # its outcome is the verdict, or it is known that there is none


@dataclass(frozen=True, slots=True)
class SessionsSnapshot:
    """All sessions, the newest first; `chosen` is the one under the cursor, `view` all of it."""

    lines: tuple[SessionLine, ...]
    chosen: int | None = None
    view: TuneView | None = None

    @property
    def said(self) -> str:
        """What came of the chosen session: its verdict in one sentence, and its message."""
        if self.view is None:
            return ""
        message = self.view.session.message
        found = sentence(self.view) or "Nothing decides this session."
        return " ".join([found, *([f"({clean(message, 200)})"] if message else [])])


class SessionsSource:
    """Reads the list when something was committed, and the results of the chosen session alone."""

    def __init__(
        self,
        alive: Callable[[int], bool],
        views: ViewSource | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._alive = alive
        self._clock = clock
        self._views = views or ViewSource()
        self._seen: int | None = None
        self._made: dict[int, tuple[SessionRecord, SessionLine]] = {}
        self._last = SessionsSnapshot(())
        self._sentences: dict[int, tuple[SessionRecord, str]] = {}

    def read(self, reader: "Reader", chosen: int | None) -> SessionsSnapshot:
        """The same object as before where nothing changed."""
        version, lines = reader.version(), self._last.lines
        # A keeper that dies commits nothing, so a session that goes on is looked at each time.
        if version != self._seen or any(line.state in LIVE_STATES for line in lines):
            lines = self._lines(reader)
            lines = self._last.lines if lines == self._last.lines else lines
        if self._seen is not None:  # not at the first look: the list need not wait for it
            lines = self._judged(reader, lines)
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

    def _judged(self, reader: "Reader", lines: tuple[SessionLine, ...]) -> tuple[SessionLine, ...]:
        """The lines with the verdicts of sessions that have kept none with them: some more at each look."""
        began, found = self._clock(), False
        for number, (session, line) in self._made.items():
            if line.judged or session.state in LIVE_STATES:
                continue
            known = self._sentences.get(number)
            if known is None or known[0] is not session:
                if len(self._sentences) >= MOST_JUDGED and known is None:
                    continue
                self._sentences[number] = (session, sentence_of(reader, session))
            self._made[number] = (session, with_outcome(line, self._sentences[number][1]))
            found = True
            if self._clock() - began > JUDGE_S:
                break
        return tuple(line for _, line in self._made.values()) if found else lines

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
    haystack = clean(" ".join((str(number), session.name, session.state, model, cells[5]))).lower()
    line = SessionLine(number, clean(session.name, 60), session.state, cells, haystack)
    kept = session.raw.get("sentence")
    return with_outcome(line, clean(kept, 200) if isinstance(kept, str) else "", bool(kept))


def with_outcome(line: SessionLine, found: str, judged: bool = True) -> SessionLine:
    """The line with the verdict's sentence in the place of what is known without it; that stays where there is none."""
    outcome = found or line.cells[-1]
    return replace(
        line, cells=(*line.cells[:-1], outcome), haystack=f"{line.haystack} {outcome.lower()}", judged=judged
    )


def sentence_of(reader: "Reader", session: SessionRecord) -> str:
    """The verdict of a session in one sentence, from its rows; "" where nothing can be said."""
    plan = plan_of_session(session)
    if plan is None or session.id is None:
        return ""
    judgement = judge(session, plan, reader.launches(session.id), reader.runs(session.id))
    return clean(judgement.sentence, 200) if any(one.blocks for one in judgement.workloads.values()) else ""


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


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def matching(lines: tuple[SessionLine, ...], words: str) -> tuple[SessionLine, ...]:
    """The lines that hold every word of the filter."""
    wanted = words.lower().split()
    return tuple(line for line in lines if all(word in line.haystack for word in wanted))
