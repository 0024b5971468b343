"""Two sessions, A and B, and what is said of them together: records only.

Everything that a person reads as a change is a ratio − 1, of B over A or of a candidate over its session's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from store.records import RunRecord, SessionRecord
from tuning.judgement.launch_values import Blocks
from tuning.records import Candidate, Plan, SessionResult

Letter = Literal["A", "B"]
Word = Literal["differs", "agrees", "not told apart", "says nothing"]


@dataclass(frozen=True, slots=True)
class Side:
    """A session with all that was read of it, and which of its blocks are complete."""

    session: SessionRecord
    plan: Plan
    candidates: tuple[Candidate, ...]
    runs: tuple[RunRecord, ...]
    result: SessionResult
    blocks: Blocks


@dataclass(frozen=True, slots=True)
class Summary:
    """One of the two sessions as it is introduced. `began` and `ended` are UTC in ISO 8601; `sentence` is the session's
    own verdict in one sentence, None where it has none."""

    letter: Letter
    id: int
    name: str
    state: str
    model: str
    began: str
    ended: str | None
    blocks: int
    blocks_planned: int
    sentence: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A ratio − 1 with its interval; None where it cannot be said."""

    change: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """A candidate against the default of its own session, with the interval for it alone. `launches` are the
    candidate's that count; `verdict` is the session's word for it, `shown` the same as a report has it."""

    candidate: int
    effect: Change
    launches: int
    verdict: str | None = None
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateComparison:
    """One candidate that both sessions measured. `difference`: how B's effect stands to A's, (1 + B)/(1 + A) − 1."""

    label: str
    settings: Mapping[str, Any]
    a: Own
    b: Own
    difference: Change
    word: Word | None  # None: of a metric that decides in neither session


@dataclass(frozen=True, slots=True)
class Level:
    """A default's own level: exp of the mean log over its blocks, the launches of a block averaged first."""

    mean: float | None
    low: float | None
    high: float | None
    launches: int
    blocks: int


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    a: Level
    b: Level
    difference: Change
    word: Word | None


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of one workload. `decides`: in A or in B."""

    metric: str
    decides: bool
    baseline: BaselineComparison
    candidates: tuple[CandidateComparison, ...]


@dataclass(frozen=True, slots=True)
class WorkloadComparison:
    """One workload that is the same in both; `label` names it, `notes` say what is not known to be the same."""

    label: str
    a: str
    b: str
    metrics: tuple[MetricComparison, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionComparison:
    """All that is said of A and B. `environment`, `defaults` (their flags) and `refused` are lines; `refused` says what
    is not compared, and why. `only_a` and `only_b` are labels of candidates that one of them has, `unmeasured` lines on
    those that both have and one could not measure.

    `confidence` is that of each deciding difference, so that all `comparisons` of them hold together; `margin` is the
    ratio − 1 within which two effects agree.
    """

    a: Summary
    b: Summary
    sentence: str
    environment: tuple[str, ...]
    defaults: tuple[str, ...]
    workloads: tuple[WorkloadComparison, ...]
    refused: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    unmeasured: tuple[str, ...]
    notes: tuple[str, ...]
    error: float
    confidence: float
    comparisons: int
    margin: float
