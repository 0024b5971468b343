"""Launches of a session whose truth is known: what a machine could have answered, drawn before anything is played.

All values are natural logs of a metric of which more is better. A launch reads

    effect + launch noise + mean of its runs' noise + drift at its moment (+ ln 0.9 where it went wrong)

with noise normal, or Student's t with 3 degrees of freedom scaled to the same standard deviation.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MARGIN = 0.02  # ratio − 1
SLOTS = 3  # launches of the baseline a block, at most
WRONG = math.log(0.9)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. Standard deviations are of the log (0.01 is 1 %); drift is over a session of all blocks."""

    name: str
    candidates: int = 12
    blocks: int = 4
    workloads: int = 1  # that decide; their noise is independent, which gives a false winner the most chances
    launch_sd: float = 0.01
    run_sd: float = 0.009
    runs: int = 3
    heavy_tails: bool = False  # of the launches
    linear_drift: float = 0.0
    step: float = 0.0  # at a random moment
    unequal: Literal["no", "uniform", "one", "quarter", "baseline"] = "no"  # whose launch noise differs
    noisy: float = 2.0  # times `launch_sd`: of those
    quiet: float = 1.0  # of the rest
    wrong: Literal["none", "anywhere", "baseline"] = "none"  # one launch of the session reads 10 % less
    redone: float = 0.0  # share of launches that are not counted at first, and are done again at the block's end
    missing: float = 0.0  # … and are not counted then either


@dataclass(frozen=True, slots=True)
class Draws:
    """The possible launches of many sessions; axes: session, block, configuration (0 the baseline), slot, workload."""

    setting: Setting
    effects: Floats  # of each configuration, the baseline's 0
    launches: Floats  # without drift
    runs: Floats  # of slot 0, without drift: session, block, configuration, run (of the first workload)
    counted: NDArray[np.int8]  # session, block, configuration, slot: 0 at once, 1 the second time, 2 never
    step_at: Floats  # session: when the step comes, as a share of the whole
    wrong_block: NDArray[np.int64]  # session: -1 none
    wrong_place: Floats  # session: which launch of that block, as a share of them

    @property
    def sessions(self) -> int:
        """How many were drawn."""
        return len(self.launches)

    def drift(self, session: int, moment: float) -> float:
        """What the machine adds to every launch at `moment`, a share of the session's whole length."""
        setting = self.setting
        return setting.linear_drift * moment + (setting.step if moment >= self.step_at[session] else 0.0)


def draw(setting: Setting, effects: Floats, sessions: int, rng: np.random.Generator) -> Draws:
    """Draw `sessions` machines for candidates with these `effects` (the baseline's is put in front)."""
    all_effects = np.concatenate([[0.0], effects])
    shape = (sessions, setting.blocks, len(all_effects), SLOTS, setting.workloads)
    noise = rng.standard_t(3, shape) / math.sqrt(3) if setting.heavy_tails else rng.standard_normal(shape)
    scale = setting.launch_sd * _factors(setting, sessions, rng)
    runs = setting.run_sd * rng.standard_normal((*shape, setting.runs))
    servers = all_effects[:, None, None] + scale[:, None, :, None, None] * noise
    wrong = rng.integers(setting.blocks, size=sessions) if setting.wrong != "none" else np.full(sessions, -1)
    chance = rng.random(shape[:4])
    counted = (chance < setting.redone).astype(np.int8) + (chance < setting.missing)
    return Draws(
        setting=setting,
        effects=all_effects,
        launches=servers + runs.mean(axis=-1),
        runs=servers[:, :, :, 0, 0, None] + runs[:, :, :, 0, 0],
        counted=counted.astype(np.int8),
        step_at=rng.random(sessions),
        wrong_block=wrong,
        wrong_place=rng.random(sessions),
    )


def _factors(setting: Setting, sessions: int, rng: np.random.Generator) -> Floats:
    """What multiplies the launch noise of each configuration (session, configuration): who is noisy is drawn."""
    count = setting.candidates
    factors = np.ones((sessions, count + 1))
    if setting.unequal == "no":
        return factors
    if setting.unequal == "uniform":
        return rng.uniform(0.5, 2.0, factors.shape)
    factors[:] = setting.quiet
    if setting.unequal == "baseline":
        factors[:, 0] = setting.noisy
        return factors
    noisy = 1 if setting.unequal == "one" else max(1, count // 4)
    chosen = rng.permuted(np.tile(np.arange(1, count + 1), (sessions, 1)), axis=1)[:, :noisy]
    np.put_along_axis(factors, chosen, setting.noisy, axis=1)
    return factors


def no_effect(candidates: int) -> Floats:
    """All candidates are as the baseline (log scale, as all effects here)."""
    return np.zeros(candidates)


def at_the_margin(candidates: int) -> Floats:
    """Half lie exactly at the margin above the baseline, half below: none is equivalent."""
    return np.log1p(np.where(np.arange(candidates) % 2 == 0, MARGIN, -MARGIN))


def mixed(candidates: int) -> Floats:
    """+1, +2, +3 and +5 %, with 12 or more also three of -3 % and two of -1 %, the rest none; below 4 one of +3 %."""
    effects = np.zeros(candidates)
    if candidates < 4:
        effects[0] = 0.03
        return np.log1p(effects)
    effects[:4] = (0.01, 0.02, 0.03, 0.05)
    if candidates >= 12:
        effects[4:9] = (-0.03, -0.03, -0.03, -0.01, -0.01)
    return np.log1p(effects)
