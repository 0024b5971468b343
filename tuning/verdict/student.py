"""Student's t turned into z and back, by tails: the centre of a distribution function has no digits left far out."""

import math


def z_of_t(t: float, df: float) -> float:
    """Φ⁻¹(F_t(t; df)): the normal deviate as improbable as `t`. ±inf for a t whose tail underflows."""
    from scipy.special import ndtri, stdtr

    z = -float(ndtri(stdtr(df, -abs(t))))
    return math.copysign(z, t) if t else 0.0


def t_of_z(z: float, df: float) -> float:
    """F_t⁻¹(Φ(z); df), the inverse of `z_of_t`."""
    from scipy.special import ndtr, stdtrit

    t = -float(stdtrit(df, ndtr(-abs(z))))
    return math.copysign(t, z) if z else 0.0


def t_of_p(p: float, df: float) -> float:
    """The value that t exceeds with probability `p`."""
    from scipy.special import stdtrit

    return -float(stdtrit(df, p))


def ratio(log_difference: float) -> float | None:
    """exp(x) − 1: a difference of logs as a ratio − 1. None where it would overflow."""
    try:
        return math.expm1(log_difference)
    except OverflowError:
        return None
