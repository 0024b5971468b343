"""A plan and what follows from it, as frozen dataclasses."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from store.run_columns import RUN_COLUMNS

if TYPE_CHECKING:
    from tuning.judged import Judgement

PLAN_METRICS_HIGHER_IS_BETTER = frozenset(
    {"total_tok_per_s", "output_tok_per_s", "requests_per_s", "goodput_per_s", "prefix_hit_perc"}
)

RUN_METRICS: tuple[str, ...] = RUN_COLUMNS
"""Each is a column of a run."""


class PlanError(Exception):
    """A plan that cannot be carried out: one line a mistake, each naming line and key (`plan.toml:7: [grid] …`)."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One benchmark. `dataset`: random | sharegpt | prefix_repetition. `shape` holds that dataset's own keys:
    random: input_len, output_len, range_ratio, prefix_len; prefix_repetition: prefix_len, suffix_len, num_prefixes,
    output_len; sharegpt: output_len (optional)."""

    name: str
    dataset: str
    requests: int
    path: str | None = None
    request_rate: float | None = None  # None is "inf"
    max_concurrency: int | None = None
    burstiness: float = 1.0
    temperature: float | None = 0.0
    ignore_eos: bool = False
    warmup: int = 1
    repeats: int = 3
    goodput: tuple[str, ...] = ()  # "ttft:500", "tpot:50"
    shape: dict[str, Any] = field(default_factory=dict)
    extra_args: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()  # names of --lora-modules that requests go to; the base where a server has none


@dataclass(frozen=True, slots=True)
class Decide:
    metric: str | dict[str, str] = "total_tok_per_s"
    smallest_effect: float = 0.02
    error: float = 0.05
    blocks: int = 4
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    hours: float | None = None
    gpu_price_per_hour: float | None = None
    money: float | None = None
    on_finish: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Index 0 is the baseline, with empty settings; `label` is short enough for a table ("2048 · 0.90 · 64")."""

    index: int
    label: str
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A point of the grid that is left out before any launch, and why."""

    settings: dict[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    model: str
    workloads: tuple[Workload, ...]
    served_name: str | None = None
    vllm: str | None = None
    screen: str = "fresh"
    server: dict[str, Any] = field(default_factory=dict)  # flags of the baseline
    server_env: dict[str, str] = field(default_factory=dict)
    grid: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    explicit_candidates: tuple[dict[str, Any], ...] = ()
    skip: tuple[str, ...] = ()
    decide: Decide = Decide()
    budget: Budget = Budget()
    calibrate: bool = False  # an A/A session: the default against itself, the grid is not used


@dataclass(frozen=True, slots=True)
class Cell:
    """One launch to be made: `slot` counts launches of one candidate within a block (always 0 but for the baseline)."""

    block: int
    position: int
    candidate: int
    slot: int


@dataclass(frozen=True, slots=True)
class PlannedRun:
    workload: str
    kind: str  # warmup | measured
    repeat: int
    seed: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan will cost. `money` is None without a price; `basis` says where the seconds come from."""

    points: int
    launches: int
    runs: int
    hours: float
    money: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric of one candidate in one workload over its launches (the launch is the sampling unit)."""

    n: int  # launches
    runs: int
    mean: float | None
    sd: float | None  # between launches
    low: float | None  # t interval of the mean
    high: float | None


@dataclass(frozen=True, slots=True)
class Effect:
    """Candidate against baseline within its blocks, as ratios − 1; None where it cannot be said."""

    blocks: int
    effect: float | None
    low: float | None
    high: float | None
    verdict: str | None = None  # a word of `tuning.judged.Word`, of the deciding metric only
    more_blocks: int | None = None


@dataclass(frozen=True, slots=True)
class CandidateResult:
    candidate: Candidate
    workload: str
    summaries: dict[str, Summary]
    effects: dict[str, Effect]
    failures: tuple[str, ...] = ()
    rejected: int = 0
    limited_by: tuple[str, ...] = ()  # the sentence of each run that counts, in their order


@dataclass(frozen=True, slots=True)
class SessionResult:
    session_id: int
    name: str
    state: str
    metric: dict[str, str]  # deciding metric by workload
    results: tuple[CandidateResult, ...]
    blocks_done: int
    blocks_planned: int
    launches_done: int
    launches_planned: int
    runs_done: int
    runs_planned: int
    seconds_used: float
    money_used: float | None
    seconds_left: float | None
    environment: dict[str, Any] = field(default_factory=dict)
    judgement: "Judgement | None" = None
