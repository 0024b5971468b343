"""Quantiles of Student's t, without the library that has them: importing it takes longer than a screen may to open."""

import math
from functools import lru_cache

_TINY = 1e-300
_EXACT = 1e-14


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """The value that Student's t with `df` degrees of freedom (above 0) exceeds with 1 - probability (0 < probability <
    1), to nine digits or more. ValueError for anything else."""
    if not (0 < probability < 1 and df > 0):
        raise ValueError(f"no t quantile for probability {probability} and {df} degrees of freedom")
    if probability == 0.5:
        return 0.0
    t = _outside(2 * min(probability, 1 - probability), df)
    return t if probability > 0.5 else -t


def _outside(tail: float, df: float) -> float:
    """The t with P(|T| > t) = `tail`, which lies between 0 and 1."""
    low, high = 0.0, 1.0
    while _two_tails(high, df) > tail:
        low, high = high, 2 * high
    t = (low + high) / 2
    for _ in range(200):
        tails = _two_tails(t, df)
        low, high = (t, high) if tails > tail else (low, t)
        # Newton's step on the log of the tails; where it leaves the bracket, half of that.
        step = tails * math.log(tails / tail) / (2 * _density(t, df))
        before, t = t, t + step if low < t + step < high else (low + high) / 2
        if abs(t - before) <= _EXACT * t:
            break
    return t


def _density(t: float, df: float) -> float:
    """Of Student's t (Abramowitz & Stegun 26.7.2)."""
    log = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(log - (df + 1) / 2 * math.log1p(t * t / df))


def _two_tails(t: float, df: float) -> float:
    """P(|T| > t) = I_x(df / 2, 1 / 2) with x = df / (df + t²) (Abramowitz & Stegun 26.7.1 with 26.5.27)."""
    return _beta_share(df / (df + t * t), t * t / (df + t * t), df / 2, 0.5)


def _beta_share(x: float, rest: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), `rest` being 1 - x, by its continued fraction (Abramowitz &
    Stegun 26.5.8), from the side on which that converges fast."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(rest, x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1/(1 + d2/(1 + …)), evaluated forwards (Lentz, Applied Optics 15, 668 (1976))."""
    value = ratio = 1.0
    inverse = 0.0
    for step in range(10_000):
        m = (step + 1) // 2
        if step % 2:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        inverse = 1 / ((1 + d * inverse) or _TINY)
        ratio = (1 + d / ratio) or _TINY
        value *= ratio * inverse
        if abs(ratio * inverse - 1) < _EXACT:
            break
    return value
