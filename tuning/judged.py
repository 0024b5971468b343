"""What a session says of its candidates: records only. `judgement.judging` makes them, all else shows them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tuning.verdict.constraint import LimitVerdict
from tuning.verdict.records import Look, Prior, Rules, Verdict

Word = Literal["better", "worse", "equivalent", "undecided", "infeasible", "failed", "dropped"]


@dataclass(frozen=True, slots=True)
class Limit:
    """`chat.p99_ttft_ms <= 500`: `workload` is None where every workload must keep it. `text` is as the plan has it."""

    workload: str | None
    metric: str
    sign: Literal["<=", ">=", "=="]
    bound: float
    text: str


@dataclass(frozen=True, slots=True)
class Deciding:
    """What was fixed when the session started, and is kept with it.

    `metric`, `rules` and `prior` are by deciding workload. `bars` are the standardised differences that decide, one
    for each look from the second block on, by workload. `calibration`: the only candidate is the default again.
    """

    metric: Mapping[str, str]
    rules: Mapping[str, Rules]
    bars: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    prior: Mapping[str, Prior] = field(default_factory=dict)
    prior_source: str | None = None  # "A/A session 12"
    calibration: bool = False


@dataclass(frozen=True, slots=True)
class LimitJudgement:
    """A limit in one workload. `verdict` None where nothing was measured; `near` says how far a level that decides
    nothing is from its bound, in words."""

    limit: Limit
    workload: str
    verdict: LimitVerdict | None
    near: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateJudgement:
    """One candidate in one deciding workload. `verdict` is the word of the contract, `found` what the looks gave (None
    before the first, and for the baseline), `block` the block, counted from 1, after which it was decided or left.
    `limits` are all of the configuration's, in whatever workload: the same in each deciding one.

    `why` is one line in plain words; "" where the word says all.
    """

    candidate: int
    verdict: Word
    found: Verdict | None = None
    limits: tuple[LimitJudgement, ...] = ()
    block: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class NoiseFound:
    """Log scale: between runs of a launch, between launches beyond that, of a launch's mean over its repeats with its
    degrees of freedom. `drift`: one sentence, None where none is seen."""

    run_sd: float | None
    launch_sd: float | None
    value_sd: float | None
    df: float
    drift: str | None = None


@dataclass(frozen=True, slots=True)
class WorkloadJudgement:
    workload: str
    metric: str
    rules: Rules
    looks: tuple[Look, ...]
    candidates: Mapping[int, CandidateJudgement]
    noise: NoiseFound
    blocks: int = 0  # complete ones, which count


@dataclass(frozen=True, slots=True)
class Judgement:
    """`sentence` is the session in one sentence. `winner`: better in a deciding workload, worse in none, and every
    limit holds; the one with the largest effect. `leaves`: who is to be launched no more, and why. `notes`, one line
    each: launches set aside with the result with and without, unequal noise, drift, blocks that do not count.
    """

    sentence: str
    deciding: Deciding
    workloads: Mapping[str, WorkloadJudgement]
    winner: int | None = None
    leaves: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()  # those that are complete, from 0
