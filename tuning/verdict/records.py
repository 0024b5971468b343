"""What goes into a verdict and what comes out of it.

Levels are natural logs of the deciding metric in one workload; what a person reads (`effect`, `low`, `high` and all
of `Drift`) is a ratio − 1, candidate over baseline, whichever direction is better.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

BASELINE = 0

State = Literal["better", "worse", "equivalent", "implausible", "undecided"]
# A candidate in one of these is launched no more.
FINAL_STATES: frozenset[State] = frozenset({"better", "worse", "equivalent", "implausible"})


@dataclass(frozen=True, slots=True)
class LaunchValue:
    """One launch: `value` is the mean over its good repeats of ln(metric). Configuration 0 is the baseline.

    `position` counts the launches of the block from 0; it serves to find drift within blocks and may be left out.
    """

    block: int
    configuration: int
    value: float
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What a session fixes before its first launch.

    `candidates` and `blocks` are those at the start, at most. `workloads` counts the deciding ones, over which `error`
    (the chance of any false winner in the session) is divided: as itself, or by taking candidates × workloads for that
    many candidates. `margin` and `smallest_effect` are ratios − 1. `decide_all` keeps candidates that can hardly be
    winners until they are equivalent or worse. `strict` raises the bar so that it holds where some configurations are
    four times as noisy as the rest.
    """

    candidates: int
    blocks: int
    workloads: int = 1
    error: float = 0.05
    margin: float = 0.02
    smallest_effect: float = 0.02
    larger_is_better: bool = True
    decide_all: bool = False
    strict: bool = False
    divide: Literal["error", "comparisons"] = "error"

    def __post_init__(self) -> None:
        if self.candidates < 1 or self.blocks < 1 or self.workloads < 1:
            raise ValueError("a verdict needs at least one candidate, one block and one deciding workload")
        if not (0 < self.error < 0.5 and 0 < self.margin < 1 and 0 < self.smallest_effect < 1):
            raise ValueError("error must lie between 0 and 0.5, margin and smallest effect between 0 and 1")


@dataclass(frozen=True, slots=True)
class Prior:
    """Noise between launches from A/A measurements on this machine, model and workload: log scale, `df` degrees."""

    sd: float
    df: float


@dataclass(frozen=True, slots=True)
class Range:
    """An effect with its interval, as ratios − 1; None where it cannot be said."""

    effect: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A candidate at a look.

    `implausible`: not decided, but a gain of the smallest effect or more is implausible; it leaves. `also` is set for
    an equivalent candidate whose interval excludes zero: a difference that is sure and too small to matter.
    `more_blocks`: about how many more decide it, None where more than the session has (or where it is decided).
    `suspect`: one of its only two launches, or the baseline's, is an outlier and nobody can tell which; no decision.
    `with_all` is the same with the launches set aside put back, None where none was.
    """

    state: State
    effect: float | None
    low: float | None
    high: float | None
    launches: int
    more_blocks: int | None = None
    suspect: bool = False
    also: Literal["better", "worse"] | None = None
    with_all: Range | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The noise of one configuration between its launches, log scale: as found (None without a degree of freedom),
    with its degrees, and drawn towards that of all."""

    launches: int
    sd: float | None
    df: float
    moderated_sd: float | None


@dataclass(frozen=True, slots=True)
class Noise:
    """Between launches, log scale, pooled over all configurations; `sd` None without a degree of freedom.

    Includes what the A/A measurements say where `prior_used`.
    """

    sd: float | None
    df: float
    by_configuration: Mapping[int, Spread] = field(default_factory=dict)
    prior_used: bool = False


@dataclass(frozen=True, slots=True)
class Trend:
    """A change from first to last, as ratio − 1, with its 95 % interval and two-sided p-value."""

    change: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Drift:
    """`blocks`: each block's level against the mean of all; `blocks_p`: of no difference between them; `over`: the
    straight line from the first block to the last; `within`: that from a block's first launch to its last."""

    blocks: Mapping[int, float] = field(default_factory=dict)
    blocks_p: float | None = None
    over: Trend | None = None
    within: Trend | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What is known after `blocks` blocks with a baseline launch.

    `verdicts` are of the candidates in play. `set_aside` are outliers that the result does without; `dropped` are
    launches that cannot be compared with the baseline (their block has none). `bar` is what a standardised
    difference must exceed, None before the second block. `unequal` are candidates far noisier than the rest; while
    there are any, the bar is that of `strict` rules.
    """

    blocks: int
    verdicts: Mapping[int, Verdict]
    set_aside: tuple[LaunchValue, ...]
    noise: Noise
    drift: Drift
    dropped: tuple[LaunchValue, ...] = ()
    bar: float | None = None
    unequal: tuple[int, ...] = ()
