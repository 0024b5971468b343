"""The judge of one session that runs: what its rows say as they stand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from store.reader import Reader
from store.records import LaunchRecord, RunRecord, SessionState
from tuning.judged import Judgement
from tuning.judgement.judging import judge
from tuning.records import Plan


@dataclass(frozen=True, slots=True)
class SessionJudge:
    """Reads the session's row anew each time: who was added and who left stands in it."""

    reader: Reader
    session_id: int
    plan: Plan

    def __call__(self, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]) -> Judgement:
        return judge(self.reader.session(self.session_id), self.plan, launches, runs)

    def sentence(self, state: SessionState) -> str:
        """The session in one sentence, once it is in `state`."""
        session = replace(self.reader.session(self.session_id), state=state)
        return judge(
            session, self.plan, self.reader.launches(self.session_id), self.reader.runs(self.session_id)
        ).sentence
