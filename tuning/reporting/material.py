"""What a report is made from, and what its parts ask of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.judged import CandidateJudgement, Judgement, WorkloadJudgement
from tuning.plans.plan_json import candidates_from_json, plan_from_json
from tuning.records import (
    PLAN_METRICS_HIGHER_IS_BETTER,
    RUN_METRICS,
    Candidate,
    CandidateResult,
    Effect,
    Plan,
    SessionResult,
)
from tuning.scheduling.schedule import BASELINE

# What decides nothing where the plan names no metric for a workload, and is shown first all the same.
USUAL_METRIC = "total_tok_per_s"


@dataclass(frozen=True)
class Material:
    """A session with its rows and what they say. Without rows, what needs them is left out."""

    session: SessionRecord
    result: SessionResult
    launches: Sequence[LaunchRecord] = ()
    runs: Sequence[RunRecord] = ()

    @cached_property
    def plan(self) -> Plan:
        return plan_from_json(self.session.plan)

    @cached_property
    def candidates(self) -> list[Candidate]:
        return candidates_from_json(self.session.candidates)

    @property
    def judgement(self) -> Judgement | None:
        return self.result.judgement

    @property
    def calibration(self) -> bool:
        """The default against itself: no candidate to choose."""
        return self.judgement is not None and self.judgement.deciding.calibration

    def label(self, index: int) -> str:
        return next((each.label for each in self.candidates if each.index == index), f"candidate {index}")

    def results(self, workload: str) -> list[CandidateResult]:
        return [each for each in self.result.results if each.workload == workload]

    def judged(self, workload: str) -> WorkloadJudgement | None:
        """None where the workload decides nothing."""
        return None if self.judgement is None else self.judgement.workloads.get(workload)

    def candidate_judged(self, workload: str, index: int) -> CandidateJudgement | None:
        judged = self.judged(workload)
        return None if judged is None else judged.candidates.get(index)

    def metric(self, workload: str) -> str:
        return self.result.metric.get(workload, USUAL_METRIC)

    def metrics(self, workload: str) -> list[str]:
        """Those that any launch measured, in their usual order."""
        results = self.results(workload)
        return [metric for metric in RUN_METRICS if any(metric in each.summaries for each in results)]

    def deciding_effect(self, each: CandidateResult) -> Effect | None:
        """On the workload's first metric; None for the baseline."""
        return None if each.candidate.index == BASELINE else each.effects.get(self.metric(each.workload))

    def by_effect(self, workload: str) -> list[CandidateResult]:
        """The baseline, then the best effect first; those without any last."""
        sign = -1 if self.metric(workload) in PLAN_METRICS_HIGHER_IS_BETTER else 1

        def place(each: CandidateResult) -> tuple[int, float, int]:
            index = each.candidate.index
            effect = self.deciding_effect(each)
            if index == BASELINE:
                return 0, 0.0, index
            return (2, 0.0, index) if effect is None or effect.effect is None else (1, sign * effect.effect, index)

        return sorted(self.results(workload), key=place)
