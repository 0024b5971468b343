"""Pairs of sessions whose truth is known, held against each other by `tuning.compared` as `llmtune compare` does it.

All values are natural logs. A launch reads its configuration's effect + its block's noise + its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuning.compared.estimates import Estimates, estimates
from tuning.statistics import Estimate, bounds, difference, mean_estimate
from tuning.verdict.design import baseline_launches
from tuning.verdict.look import look
from tuning.verdict.records import BASELINE, FINAL_STATES, LaunchValue, Rules

ERROR = 0.05


@dataclass(frozen=True, slots=True)
class Pairs:
    """One row of the table. `changes`: what B adds to the effects of A, by candidate. `leaves`: decided candidates.
    `noisier`: B's launches, so many times."""

    name: str
    effects: Sequence[float]
    blocks: int = 4
    launch_sd: float = 0.01
    block_sd: float = 0.0
    leaves: bool = True
    changes: Sequence[float] = ()
    noisier: float = 1.0


@dataclass(slots=True)
class Found:
    """In so many of `pairs`: `false`: some effect that did not change "differs"; `level`: the defaults, which are the
    same, differ, a block counting once; `level_by_launch`: if each launch counted; `seen`: of changed effects."""

    pairs: int = 0
    false: int = 0
    level: int = 0
    level_by_launch: int = 0
    seen: int = 0
    changed: int = 0

    def share(self, count: int) -> float:
        """In percent of the pairs."""
        return 100 * count / max(self.pairs, 1)


def played(setting: Pairs, effects: Sequence[float], sd: float, rng: np.random.Generator) -> list[LaunchValue]:
    """The launches of one session."""
    rules = Rules(candidates=len(effects), blocks=setting.blocks)
    in_play, values = set(range(1, len(effects) + 1)), list[LaunchValue]()
    for block in range(setting.blocks):
        if not in_play:
            break
        level = rng.normal(0, setting.block_sd)
        launched = [BASELINE] * baseline_launches(len(in_play)) + sorted(in_play)
        for configuration in launched:
            effect = 0.0 if configuration == BASELINE else math.log1p(effects[configuration - 1])
            value = level + effect + rng.normal(0, sd)
            values.append(LaunchValue(block, configuration, value))
        if block and setting.leaves:
            seen = look(values, rules, in_play)
            in_play -= {each for each, verdict in seen.verdicts.items() if verdict.state in FINAL_STATES}
    return values


def simulate(setting: Pairs, pairs: int, rng: np.random.Generator) -> Found:
    """So many pairs of sessions, compared."""
    found = Found()
    changes = [*setting.changes, *[0.0] * (len(setting.effects) - len(setting.changes))]
    moved = [effect + change for effect, change in zip(setting.effects, changes, strict=True)]
    for _ in range(pairs):
        one = played(setting, setting.effects, setting.launch_sd, rng)
        other = played(setting, moved, setting.noisier * setting.launch_sd, rng)
        a, b = (estimates(values, len(setting.effects)) for values in (one, other))
        apart = {each: difference(b.effects[each], a.effects[each]) for each in a.effects.keys() & b.effects.keys()}
        level = _level_apart(a, b)
        known = sum(each.se is not None for each in (*apart.values(), level))
        sure = 1 - ERROR / max(known, 1)
        differ = {each for each, estimate in apart.items() if _differs(estimate, sure)}
        changed = {each for each, change in enumerate(changes, start=1) if change}
        found.pairs += 1
        found.false += bool(differ - changed)
        found.seen += len(differ & changed)
        found.changed += len(changed)
        found.level += _differs(level, 1 - ERROR)
        by_launch = [mean_estimate([v.value for v in of if v.configuration == BASELINE]) for of in (other, one)]
        found.level_by_launch += _differs(difference(*by_launch), 1 - ERROR)
    return found


def _level_apart(a: Estimates, b: Estimates) -> Estimate:
    assert a.level is not None
    assert b.level is not None
    return difference(b.level, a.level)


def _differs(apart: Estimate, confidence: float) -> bool:
    interval = bounds(apart, confidence)
    return interval is not None and not interval[0] <= 0 <= interval[1]
