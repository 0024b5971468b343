"""Means with t intervals, and paired effects: the arithmetic between launches and a table.

The launch is the sampling unit: callers average the runs of a launch first and pass one number for each. Textbook
formulas (Snedecor & Cochran, Statistical Methods, 8th ed., sections 4.5 and 6.3); quantiles from scipy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Interval:
    """`mean` with the two-sided interval around it; `low` and `high` None where fewer than two values were given."""

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, its standard error (None where nothing says how far it may be off) and that one's degrees of freedom."""

    value: float
    se: float | None
    df: float


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; ValueError for no values."""
    if not values:
        raise ValueError("the mean of nothing")
    return math.fsum(values) / len(values)


def sd(values: Sequence[float]) -> float | None:
    """Standard deviation with n - 1, None below two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    # hypot: the square of a large number would overflow where the result does not
    return math.hypot(*(value - centre for value in values)) / math.sqrt(len(values) - 1)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """The value that Student's t with `df` degrees of freedom exceeds with 1 - probability (0 < probability < 1).

    Cached: a report asks for it thousands of times, for as many probabilities and degrees as it has numbers of blocks.
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def load() -> None:
    """Import what the first interval needs: a fifth of a second that a screen need not wait for."""
    import scipy.special  # noqa: F401


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """mean ± t(1 - (1 - confidence)/2; n - 1) · sd / √n, for values independent of each other; ValueError for none."""
    centre, spread, n = mean(values), sd(values), len(values)
    if spread is None:
        return Interval(n, centre, None, None, None)
    half = t_quantile(0.5 + confidence / 2, n - 1) * spread / math.sqrt(n)
    return Interval(n, centre, spread, centre - half, centre + half)


def mean_estimate(values: Sequence[float]) -> Estimate:
    """The mean of values independent of each other, se = sd/√n with n - 1 degrees; ValueError for none."""
    spread = sd(values)
    return Estimate(mean(values), None if spread is None else spread / math.sqrt(len(values)), len(values) - 1.0)


def difference(of: Estimate, against: Estimate) -> Estimate:
    """`of` - `against`, independent of each other: se² = se₁² + se₂², with Satterthwaite's degrees of freedom,
    se⁴/(se₁⁴/df₁ + se₂⁴/df₂) (F. E. Satterthwaite, Biometrics Bulletin 2, 1946, 110-114). Of two `mean_estimate`s this
    is Welch's (B. L. Welch, Biometrika 34, 1947, 28-35)."""
    value = of.value - against.value
    if of.se is None or against.se is None:
        return Estimate(value, None, 0.0)
    first, second = of.se**2, against.se**2
    if first + second <= 0:
        return Estimate(value, 0.0, of.df + against.df)
    df = (first + second) ** 2 / (first**2 / of.df + second**2 / against.df)
    return Estimate(value, math.sqrt(first + second), df)


def bounds(estimate: Estimate, confidence: float = 0.95) -> tuple[float, float] | None:
    """value ± t(1 - (1 - confidence)/2; df)·se; None where there is no standard error."""
    if estimate.se is None:
        return None
    half = t_quantile(0.5 + confidence / 2, estimate.df) * estimate.se if estimate.se else 0.0
    return estimate.value - half, estimate.value + half


def level_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The mean of a metric whose spread grows with its size, with a t interval taken on the logs and brought back.

    Throughputs and latencies are above zero, and so are their intervals then; with two launches the plain interval
    would reach below. Where a value has no log (a count of 0) it is the plain one. `mean` and `sd` are those of the
    values themselves. ValueError for none.
    """
    plain = t_interval(values, confidence)
    if any(value <= 0 for value in values):
        return plain
    logs = t_interval([math.log(value) for value in values], confidence)
    low, high = (None if bound is None else _exp(bound) for bound in (logs.low, logs.high))
    return replace(plain, low=low, high=high)


def paired_ratio(
    candidate: Mapping[int, Sequence[float]], baseline: Mapping[int, Sequence[float]], confidence: float = 0.95
) -> Interval | None:
    """Candidate over baseline, as ratio - 1, from launches in the same blocks (block → mean log of each launch).

    d_b = mean of the candidate's logs in block b - mean of the baseline's; the paired t interval of d over the blocks
    that have both, through exp(·) - 1. `sd` stays on the log scale. None without a common block.
    """
    blocks = [block for block in candidate if candidate[block] and baseline.get(block)]
    if not blocks:
        return None
    log = t_interval([mean(candidate[block]) - mean(baseline[block]) for block in sorted(blocks)], confidence)
    low, high = (None if bound is None else _ratio(bound) for bound in (log.low, log.high))
    centre = _ratio(log.mean)
    return None if centre is None else Interval(log.n, centre, log.sd, low, high)


def mean_log(values: Sequence[float]) -> float | None:
    """Mean of the natural logs; None for no values, or where one is not above 0 and so has none."""
    try:
        return math.fsum(map(math.log, values)) / len(values)
    except (ValueError, ZeroDivisionError):
        return None


def _exp(log: float) -> float | None:
    try:
        return math.exp(log)
    except OverflowError:
        return None


def _ratio(log: float) -> float | None:
    try:
        return math.expm1(log)
    except OverflowError:
        return None
