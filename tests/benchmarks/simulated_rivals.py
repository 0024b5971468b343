"""What else one could conclude from the same machines: the best single run, and Welch's test that counts runs.

Both are given a full grid, one launch of each configuration a block in random order; the best single run looks at the
first run of the first block only, as a tuner that tries each point once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from tests.benchmarks.simulated_noise import WRONG, Draws, Floats

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Rivals:
    """In how many sessions each named a winner that is none."""

    single: int  # the best reads above the baseline
    single_by_margin: int  # … by 2 % or more
    welch: int  # any candidate above the baseline at a two-sided 5 %, each tested alone
    welch_bonferroni: int  # … at 5 % divided over the candidates

    def __add__(self, other: "Rivals") -> "Rivals":
        return Rivals(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def judge(draws: Draws, rng: np.random.Generator) -> Rivals:
    """Count the false winners of both over all sessions of `draws`."""
    runs = _grid(draws, rng)
    false = draws.effects[1:] <= 0
    first = runs[:, 0, :, 0]
    gain = np.where(np.isnan(first[:, 1:] - first[:, :1]), -np.inf, first[:, 1:] - first[:, :1])
    best = gain.argmax(axis=1)
    best_gain = gain[np.arange(len(gain)), best]
    wrong = false[best]
    p = _welch(runs)
    return Rivals(
        single=int((wrong & (best_gain > 0)).sum()),
        single_by_margin=int((wrong & (best_gain >= 0.02)).sum()),
        welch=int((false & (p < LEVEL / 2)).any(axis=1).sum()),
        welch_bonferroni=int((false & (p < LEVEL / 2 / len(false))).any(axis=1).sum()),
    )


def _grid(draws: Draws, rng: np.random.Generator) -> Floats:
    """The runs with drift and the launch gone wrong, NaN where one is missing: session, block, configuration, run."""
    setting, runs = draws.setting, draws.runs.copy()
    sessions, blocks, configurations, _ = runs.shape
    order = rng.random((sessions, blocks, configurations)).argsort(axis=2).argsort(axis=2)
    moment = (np.arange(blocks)[:, None] * configurations + order) / (blocks * configurations)
    drift = setting.linear_drift * moment + setting.step * (moment >= draws.step_at[:, None, None])
    runs += drift[..., None]
    if setting.wrong != "none":
        place = (draws.wrong_place * configurations).astype(int) if setting.wrong == "anywhere" else 0
        runs[np.arange(sessions), draws.wrong_block, place] += WRONG
    runs[draws.counted[..., 0] == 2] = np.nan
    return runs


def _welch(runs: Floats) -> NDArray[np.float64]:
    """One-sided p of each candidate above the baseline, all its runs taken as independent (session, candidate)."""
    pooled = runs.transpose(0, 2, 1, 3).reshape(runs.shape[0], runs.shape[2], -1)
    n = (~np.isnan(pooled)).sum(axis=2)
    mean, share = np.nanmean(pooled, axis=2), np.nanvar(pooled, axis=2, ddof=1) / n
    both = share[:, 1:] + share[:, :1]
    df = both**2 / (share[:, 1:] ** 2 / (n[:, 1:] - 1) + share[:, :1] ** 2 / (n[:, :1] - 1))
    p: NDArray[np.float64] = stdtr(df, (mean[:, :1] - mean[:, 1:]) / np.sqrt(both))
    return p
