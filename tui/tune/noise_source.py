"""What earlier sessions say of this machine's noise, for the editor's prices. Read on the poller's thread."""

from typing import TYPE_CHECKING

from store.records import SessionRecord, SessionState
from tuning.environment_change import differences
from tuning.judgement.certainty import KnownNoise, known_noise
from tuning.judgement.judging import judge
from tuning.plans.plan_json import plan_from_json

if TYPE_CHECKING:
    from store.reader import Reader

MOST = 4
"""Sessions that are read: of each of the last models the newest A/A session and the newest other one."""
OVER: tuple[SessionState, ...] = ("done", "stopped")


class NoiseSource:
    """Judges one session a look, so that no look takes longer than one session's runs. For one thread."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[SessionRecord, KnownNoise | None]] = {}
        self._last: tuple[KnownNoise, ...] = ()

    def read(self, reader: "Reader") -> tuple[KnownNoise, ...]:
        """The newest first; the same object as before where nothing new was found."""
        wanted = worth_reading(reader.sessions(OVER), reader.newest_session())
        unread = next((one for one in wanted if self._found.get(one.id or 0, (None,))[0] != one), None)
        if unread is not None:
            self._found[unread.id or 0] = (unread, noise_of(reader, unread))
        known = (self._found.get(one.id or 0, (None, None))[1] for one in wanted)
        found = tuple(one for one in known if one is not None)
        if found != self._last:
            self._last = found
        return self._last


def worth_reading(sessions: list[SessionRecord], newest: SessionRecord | None) -> list[SessionRecord]:
    """Of the sessions that are over those that tell most, the newest first; of whichever model, but only of the machine
    of the newest session, which is taken for the present one: what is here now is not known before something starts."""
    if newest is None:
        return []
    kept: dict[tuple[str, bool], SessionRecord] = {}
    for one in sorted(sessions, key=lambda each: each.id or 0, reverse=True):
        kind = str(one.plan.get("model")), bool(one.plan.get("calibrate"))
        if kind not in kept and "earlier_environments" not in one.raw:
            if not differences({**one.environment, "model_hash": None}, newest.environment):
                kept[kind] = one
            if len(kept) == MOST:
                break
    return list(kept.values())


def noise_of(reader: "Reader", session: SessionRecord) -> KnownNoise | None:
    """None where it says nothing, or its plan was written in another shape."""
    assert session.id is not None
    try:
        plan = plan_from_json(session.plan)
    except (KeyError, TypeError, AttributeError):
        return None
    judgement = judge(session, plan, reader.launches(session.id), reader.runs(session.id))
    return known_noise(session.id, plan, judgement)
