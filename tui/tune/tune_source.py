"""What the Tune screen reads, on the poller's thread: one frozen snapshot a look."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from engine.text import clean
from store.errors import NotFound
from store.records import LaunchRecord, RunRecord, SessionRecord
from tui.tune.noise_source import NoiseSource
from tui.tune.plan_preview import Basis, measured_basis
from tui.tune.tune_view import LIVE_STATES, TuneView
from tuning.judgement.leaving import reason_of
from tuning.plans.plan_json import plan_from_json
from tuning.records import Plan
from tuning.results import session_result

if TYPE_CHECKING:
    from store.reader import Reader

REREAD_S = 10.0
KEPT_VIEWS = 4
Alive = Callable[[int], bool]
"""Whether a session's keeper lives."""


@dataclass(frozen=True, slots=True)
class TuneSnapshot:
    """`view` is the session to show, None where only the editor has something to say. `last_plan` and `basis` come from
    the newest session and fill the editor. `hindrance` is one line on why the session's keeper cannot write."""

    view: TuneView | None
    last_plan: Plan | None
    basis: Basis
    hindrance: str | None = None


class ViewSource:
    """Reads sessions for screens that look once a second: while nothing happens in one, the view of the last look.

    Its results come from all its runs, and samples of its server are committed each second: only what it is marked by
    is read each time. Times that only pass are as of the last change, or up to REREAD_S ago. For one thread.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._views: dict[int, tuple[tuple[object, ...], float, TuneView]] = {}

    def read(self, reader: "Reader", session: SessionRecord, kept: bool, now: str) -> TuneView:
        """The session as it stands; `kept` says whether its keeper lives."""
        number = _id(session)
        marks = (session, reader.marks(number), kept)
        known = self._views.pop(number, None)
        if known is None or known[0] != marks or self._is_old(session, known[1]):
            known = (marks, self._clock(), read_view(reader, session, lambda _: kept, now))
        self._views[number] = known  # the last read is the last to be dropped
        if len(self._views) > KEPT_VIEWS:
            del self._views[next(iter(self._views))]
        return known[2]

    def _is_old(self, session: SessionRecord, read_at: float) -> bool:
        return session.state in LIVE_STATES and self._clock() >= read_at + REREAD_S


class TuneSource:
    """Reads for the Tune screen. What the editor starts from is read again only when there is another session."""

    def __init__(self, alive: Alive, views: ViewSource | None = None) -> None:
        self._alive = alive
        self._views = views or ViewSource()
        self._newest: tuple[int | None, Plan | None, Basis] = (None, None, Basis())
        self._noise = NoiseSource()
        self._seen_editor = False

    def read(self, reader: "Reader", chosen: int | None, now: str, editing: bool = False) -> TuneSnapshot:
        """`chosen` is the session to show; without one, the newest that goes on. Where only the editor has something to
        say, or a person is `editing`, noise is read from the second look on: the form need not wait for it."""
        self._read_newest(reader)
        shown = self._chosen(reader, chosen) or self._going_on(reader)
        view = self._views.read(reader, shown, self._alive(_id(shown)), now) if shown is not None else None
        basis = self._newest[2]
        if view is None or editing:
            if self._seen_editor:
                basis = replace(basis, noise=self._noise.read(reader))
            self._seen_editor = True
        return TuneSnapshot(view, self._newest[1], basis)

    def _chosen(self, reader: "Reader", chosen: int | None) -> SessionRecord | None:
        if chosen is None:
            return None
        try:
            return reader.session(chosen)
        except NotFound:  # it was deleted
            return None

    def _going_on(self, reader: "Reader") -> SessionRecord | None:
        for one in reversed(reader.sessions(("running", "paused", "waiting"))):
            if one.state != "waiting" or self._alive(_id(one)):
                return one
        return None

    def _read_newest(self, reader: "Reader") -> None:
        newest = reader.newest_session()
        mark = newest.id if newest is not None and newest.state not in ("running", "paused") else None
        if newest is None or (self._newest[1] is not None and mark == self._newest[0]):
            return
        number = _id(newest)
        basis = measured_basis(number, reader.launches(number), reader.runs(number))
        self._newest = (mark, plan_of_session(newest), basis)


def plan_of_session(session: SessionRecord) -> Plan | None:
    """The session's plan as it was understood; None where an older program wrote it in another shape."""
    try:
        return plan_from_json(session.plan)
    except (KeyError, TypeError, AttributeError):
        return None


def read_view(reader: "Reader", session: SessionRecord, alive: Alive, now: str) -> TuneView:
    """One session with its results and what it is doing."""
    number = _id(session)
    launches, runs = reader.launches(number), reader.runs(number)
    out = session.raw.get("out")
    left = {int(key): str(why) for key, why in out.items()} if isinstance(out, dict) else {}
    launch = next((one for one in reversed(launches) if one.state in ("starting", "ready")), None)
    return TuneView(
        session=session,
        plan=plan_of_session(session),
        result=session_result(session, launches, runs, now),
        launch=launch,
        run=_running(runs, launch),
        keeper_alive=alive(number),
        dropped=frozenset(index for index, why in left.items() if reason_of(why) == "skipped"),
        failures=_failures(launches),
        foregone=tuple((index, why) for index, why in sorted(left.items()) if reason_of(why) == "not tried"),
        offers=_offers(launches, [one["settings"] for one in session.candidates]),
        events=tuple(reader.events(session_id=number, limit=50)),
    )


def _running(runs: list[RunRecord], launch: LaunchRecord | None) -> RunRecord | None:
    if launch is None:
        return None
    return next((one for one in reversed(runs) if one.state == "running" and one.launch_id == launch.id), None)


def _failures(launches: list[LaunchRecord]) -> tuple[tuple[int, str], ...]:
    """Why each candidate's newest launch failed, for those whose newest did."""
    newest = {one.candidate: one for one in launches}
    return tuple(
        (index, clean(one.failure or one.failure_class or "no reason was recorded", 300))
        for index, one in sorted(newest.items())
        if one.state == "failed"
    )


def _offers(launches: list[LaunchRecord], known: list[dict[str, Any]]) -> tuple[tuple[int, dict[str, Any]], ...]:
    """What would start in place of each candidate whose newest launch failed, unless that is a candidate already."""
    newest = {one.candidate: one for one in launches}
    return tuple(
        (index, offer)
        for index, one in sorted(newest.items())
        if one.state == "failed" and isinstance(offer := one.raw.get("offer"), dict) and offer not in known
    )


def _id(session: SessionRecord) -> int:
    assert session.id is not None
    return session.id
