"""A launch so far from what its configuration and block say that the verdict is given without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tuning.verdict.layout import Fit, connected, fit
from tuning.verdict.records import BASELINE, LaunchValue
from tuning.verdict.student import t_of_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHANCE = 0.0001  # of setting aside a good launch in a look, if noise is normal
LEAST_DF = 4
MOST = 2  # a session
NO_NOISE = 1e-9  # log scale: beyond what any measurement resolves; below it lie rounding errors only


@dataclass(frozen=True, slots=True)
class Screened:
    """`fitted` is of the launches kept; of a `suspect` configuration one of two launches is an outlier, both kept."""

    fitted: Fit
    set_aside: tuple[LaunchValue, ...]
    suspect: frozenset[int]
    dropped: tuple[LaunchValue, ...] = ()


def deleted_residuals(fitted: Fit) -> "NDArray[Any]":
    """t_i = e_i/(s_(i)·√(1 − h_i)), s_(i)² = (SS − e_i²/(1 − h_i))/(df − 1): Student's t with df − 1 for a good launch.

    The externally studentised residual, as NAG's g02faf and R's rstudent give it. 0 for a launch that nothing else
    speaks of (h = 1). Needs df ≥ 2.
    """
    import numpy as np

    free = 1 - fitted.leverages
    known = free > 1e-9
    own = np.where(known, fitted.residuals**2 / np.where(known, free, 1), 0)
    total = float(fitted.residuals @ fitted.residuals)
    # Two launches of one configuration that explain all of the noise leave a rounding error, of either sign.
    rest = np.maximum(total - own, total * 1e-12) / (fitted.df - 1)
    scaled = np.where(known & (total > 0), own / np.where(rest > 0, rest, 1), 0)
    return np.sign(fitted.residuals) * np.sqrt(scaled)  # type: ignore[no-any-return]


def screen(values: Sequence[LaunchValue]) -> Screened:
    """Set aside at most one launch a configuration and two in all; `values` must be comparable with the baseline.

    The largest |t_i|, if beyond the two-sided 0.0001/launches point of t(df − 1) and df ≥ 4, then again without it.
    Of two launches of a configuration the residuals mirror each other and nobody can tell which is wrong: the
    configuration is suspect, and the search goes on without it. Method of the project's notes.
    """
    kept, aside, suspect = list(values), list[LaunchValue](), set[int]()
    judged: set[int] = set()
    while len(judged) < MOST:
        among = connected([value for value in kept if value.configuration not in suspect]).kept
        found = _farthest(among, judged)
        if found is None:
            break
        judged.add(found.configuration)
        if sum(value.configuration == found.configuration for value in kept) <= 2:
            suspect.add(found.configuration)
            if found.configuration == BASELINE:
                break  # without the baseline there is nothing left to search
        else:
            kept.remove(found)
            aside.append(found)
    linked = connected(kept)
    return Screened(fit(linked.kept), tuple(aside), frozenset(suspect), linked.dropped)


def _farthest(values: Sequence[LaunchValue], but: set[int]) -> LaunchValue | None:
    if not values:
        return None
    fitted = fit(values)
    if fitted.df < LEAST_DF or float(abs(fitted.residuals).max()) < NO_NOISE:
        return None
    candidates = [
        (abs(float(t)), -place)
        for place, t in enumerate(deleted_residuals(fitted))
        if fitted.values[place].configuration not in but
    ]
    if not candidates:
        return None
    largest, place = max(candidates)
    critical = t_of_p(CHANCE / len(fitted.values) / 2, fitted.df - 1)
    return fitted.values[-place] if largest > critical else None
