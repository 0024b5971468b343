"""What a standardised difference must exceed at each look, so that a session names a false winner in 5 % at most.

The bounds are those of a many-to-one group-sequential test (Magirr, Jaki & Whitehead 2012, Biometrika 99:494-501), with
the error spent over the looks (Lan & DeMets 1983) by the power family of Kim & DeMets (1987; gsDesign's `sfPower`).
They hold for normal values of equal, known variance; `kappa` is the margin for the rest.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tuning.verdict.design import baseline_launches
from tuning.verdict.records import Rules

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_LOOK = 2
RHO = 3.0
STRICT = 1.25
EARLY = 1.5  # at the first look, where more follow: a variance of one degree of freedom tells little
EARLY_FROM = 3  # candidates; with one there is one variance

_PATHS = 4096  # of the baseline: the bounds are right to 0.01
_NODES = 24, 1.6  # at least, and for each standard deviation of a step: fewer lose what lies between them
_TAIL = 5.5  # standard deviations of a sum, below which nothing is counted: 2e-8 of a candidate
_CHUNK = 256  # paths at a time, which bounds memory
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
MOST_BLOCKS = FIRST_LOOK + len(_PRIMES) - 1


def spent(blocks: int, most: int, error: float) -> float:
    """The error spent by the look after `blocks` of `most` blocks: error · (blocks/most)³ (Kim & DeMets, ρ = 3)."""
    return float(error * (blocks / most) ** RHO)


def kappa(candidates: int, strict: bool = False) -> float:
    """The factor on the bound, found by simulation: with it unequal noise up to twice the rest's keeps the promise.

    1.12 up to ten candidates, 1.08 up to fifteen, 1.07 beyond; 1.25 if `strict`. Method of the project's notes.
    """
    if strict:
        return STRICT
    return 1.12 if candidates <= 10 else 1.08 if candidates <= 15 else 1.07


def bars(rules: Rules) -> tuple[float, ...]:
    """κ·u_n for the looks after blocks 2, 3, …, `rules.blocks`; empty where there is one block only.

    Over several deciding workloads either the error is divided (Bonferroni, whatever their correlation), or candidates
    × workloads are taken for that many candidates of one family. At the first of several looks κ is EARLY at least:
    of the false winners among unequally noisy candidates half were named there, and of the true ones hardly any.
    """
    divided = rules.divide == "error"
    error = rules.error / rules.workloads if divided else rules.error
    comparisons = rules.candidates if divided else rules.candidates * rules.workloads
    factor = kappa(rules.candidates, rules.strict)
    found = bounds(comparisons, rules.blocks, baseline_launches(rules.candidates), error)
    if len(found) > 1 and rules.candidates >= EARLY_FROM:
        return max(factor, EARLY) * found[0], *(factor * bound for bound in found[1:])
    return tuple(factor * bound for bound in found)


def bar(rules: Rules, blocks: int) -> float | None:
    """κ·u_n at the look after `blocks` blocks, None before the first look. IndexError beyond `rules.blocks`."""
    return None if blocks < FIRST_LOOK else bars(rules)[blocks - FIRST_LOOK]


@lru_cache(maxsize=256)
def bounds(comparisons: int, blocks: int, baselines: int, error: float = 0.05) -> tuple[float, ...]:
    """u_2 … u_blocks for so many candidates, launched once a block, and a baseline launched `baselines` times.

    With C_jn and B_n the sums of n standard normals, B's of variance 1/r, and Z_n = (max_j C_jn − B_n)/√(n(1 + 1/r)),
    u_n solves P(Z_2 ≤ u_2, …, Z_{n−1} ≤ u_{n−1}, Z_n > u_n) = spent(n) − spent(n−1).

    Given the path of B the candidates are independent and alike, so the probability of no crossing is
    E_B[q(B)^k], with q that of one candidate: by recursive Gauss-Legendre quadrature over its own sum, E_B over a
    lattice of 4,096 paths. No random numbers: the same on every machine, right to about 0.01, a quarter of a second.
    """
    if comparisons < 1 or baselines < 1 or not 1 <= blocks <= MOST_BLOCKS:
        raise ValueError(f"bounds are known for 1 to {MOST_BLOCKS} blocks, at least one candidate and one baseline")
    import numpy as np

    if blocks < FIRST_LOOK:
        return ()
    paths = _baseline_paths(blocks - 1, baselines)
    found: list[float] = []
    alive = _Alive()
    for column, n in enumerate(range(FIRST_LOOK, blocks + 1)):
        scale, path = np.sqrt(n * (1 + 1 / baselines)), paths[:, column]
        survive = 1 - spent(n, blocks, error)

        def short(u: float, scale: float = scale, path: "NDArray[Any]" = path, survive: float = survive) -> float:
            one = np.clip(alive.below(u * scale + path), 0, 1)
            return float(np.mean(one**comparisons)) - survive

        found.append(_root(short, found[-1] if found else 10.0))
        if n < blocks:
            alive.stop_above(found[-1] * scale + path, n)
    return tuple(found)


class _Alive:
    """The density of one candidate's sum among those that have crossed no bound, on nodes of its own a path.

    Before the first look a sum of FIRST_LOOK normals; arrays are paths × nodes.
    """

    def __init__(self) -> None:
        self._nodes: NDArray[Any] | None = None
        self._mass: NDArray[Any] | None = None

    def below(self, limit: "NDArray[Any]") -> "NDArray[Any]":
        """P(never crossed, and the next sum ≤ limit), a path each."""
        from scipy.special import ndtr

        if self._nodes is None or self._mass is None:
            return ndtr(limit / FIRST_LOOK**0.5)  # type: ignore[no-any-return]
        return (self._mass * ndtr(limit[:, None] - self._nodes)).sum(axis=1)  # type: ignore[no-any-return]

    def stop_above(self, limit: "NDArray[Any]", n: int) -> None:
        """Take one step, to the sum of `n`, and lose what lies above `limit`."""
        import numpy as np

        least = -_TAIL * n**0.5
        half = (np.maximum(limit, least + 0.1) - least) / 2
        points, weights = np.polynomial.legendre.leggauss(max(_NODES[0], int(2 * _NODES[1] * half.max())))
        nodes = least + half[:, None] * (points + 1)
        if self._nodes is None or self._mass is None:
            density = np.exp(-(nodes**2) / (2 * FIRST_LOOK)) / np.sqrt(2 * np.pi * FIRST_LOOK)
        else:
            density = np.empty_like(nodes)
            for start in range(0, len(nodes), _CHUNK):
                part = slice(start, start + _CHUNK)
                steps = nodes[part, :, None] - self._nodes[part, None, :]
                density[part] = np.einsum("pij,pj->pi", np.exp(-(steps**2) / 2), self._mass[part]) / np.sqrt(2 * np.pi)
        self._nodes, self._mass = nodes, density * weights * half[:, None]


def _root(rising: Callable[[float], float], high: float) -> float:
    """Where a function that rises from below 0 at 0 crosses it, below about `high`: false position (Illinois)."""
    low, at_low = 0.0, rising(0.0)
    while (at_high := rising(high)) < 0:
        low, at_low, high = high, at_high, high + 1.0
    while high - low > 1e-5:
        middle = low + (high - low) * min(max(at_low / (at_low - at_high), 0.02), 0.98)
        value = rising(middle)
        if value < 0:
            low, at_low, at_high = middle, value, at_high / 2
        else:
            high, at_high, at_low = middle, value, at_low / 2
    return high


def _baseline_paths(looks: int, baselines: int) -> "NDArray[Any]":
    """Sums of the baseline at each look, paths × looks: a Weyl sequence of the roots of primes, turned normal."""
    import numpy as np
    from scipy.special import ndtri

    fractions = np.outer(np.arange(_PATHS) + 0.5, np.sqrt(_PRIMES[:looks])) % 1
    blocks_between = np.array([FIRST_LOOK] + [1] * (looks - 1))
    return np.cumsum(ndtri(fractions) * np.sqrt(blocks_between / baselines), axis=1)
