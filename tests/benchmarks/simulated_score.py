"""How often the verdicts of simulated sessions were right, and what they took."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.simulated_noise import MARGIN, Floats, Setting, draw
from tests.benchmarks.simulated_rivals import Rivals, judge
from tests.benchmarks.simulated_sessions import Played, play
from tuning.verdict.records import Rules

POWER_AT = (0.01, 0.02, 0.03, 0.05)
NO_RIVALS = Rivals(0, 0, 0, 0)
SESSIONS_AT_ONCE = 250  # drawn together; bounds the memory


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over sessions; of each effect of POWER_AT `there` counts the candidates, `found` those called better."""

    sessions: int = 0
    false_winner: int = 0  # sessions that called better what is not above the baseline, in any workload
    silent_winner: int = 0  # … of these, sessions that did not say that their noise is unequal
    false_worse: int = 0
    false_equivalent: int = 0  # … equivalent what is at least a margin away
    missed_above: int = 0  # sessions in which any interval, at any look, lay below its truth
    missed_below: int = 0
    unequal: int = 0  # sessions that said that their noise is unequal
    launches: int = 0
    last: int = 0  # intervals at the end, of candidates
    last_holds: int = 0  # … that hold their truth
    none: int = 0  # candidates without an effect
    none_equivalent: int = 0
    found: tuple[int, ...] = (0,) * len(POWER_AT)
    there: tuple[int, ...] = (0,) * len(POWER_AT)
    rivals: Rivals = NO_RIVALS

    def __add__(self, other: "Score") -> "Score":
        def plus(a: object, b: object) -> object:
            if isinstance(a, tuple) and isinstance(b, tuple):
                return tuple(x + y for x, y in zip(a, b, strict=True))
            return a + b  # type: ignore[operator]

        return Score(*(plus(getattr(self, name), getattr(other, name)) for name in self.__slots__))  # type: ignore[arg-type]

    def perc(self, count: int, of: int | None = None) -> float:
        """`count` of the sessions (or of `of`) in per cent, NaN of none."""
        whole = self.sessions if of is None else of
        return 100 * count / whole if whole else math.nan

    def error_perc(self, count: int) -> float:
        """The standard error of that share, points: √(p(1 − p)/sessions)."""
        p = count / self.sessions
        return 100 * math.sqrt(p * (1 - p) / self.sessions)

    @property
    def power(self) -> tuple[float, ...]:
        """Per cent of the candidates of each effect that were called better."""
        return tuple(self.perc(found, there) for found, there in zip(self.found, self.there, strict=True))


def simulate(setting: Setting, rules: Rules, effects: Floats, sessions: int, seed: Sequence[int]) -> Score:
    """Play `sessions` sessions; the same `seed` gives the same."""
    rng = np.random.default_rng(seed)
    total = Score()
    while total.sessions < sessions:
        draws = draw(setting, effects, min(SESSIONS_AT_ONCE, sessions - total.sessions), rng)
        for session in range(draws.sessions):
            total += _score(play(draws, session, rules), draws.effects)
        total += Score(rivals=judge(draws, rng))
    return total


def _score(played: Played, effects: Floats) -> Score:
    found, there = [0] * len(POWER_AT), [0] * len(POWER_AT)
    winner = worse = equivalent = False
    holds = none = none_equivalent = 0
    for (_, candidate), verdict in played.verdicts.items():
        effect = float(np.expm1(effects[candidate]))
        winner |= verdict.state == "better" and effect <= 0
        worse |= verdict.state == "worse" and effect >= 0
        equivalent |= verdict.state == "equivalent" and abs(effect) >= MARGIN - 1e-9
        if verdict.low is not None and verdict.high is not None:
            holds += verdict.low <= effect <= verdict.high
        none += effect == 0
        none_equivalent += effect == 0 and verdict.state == "equivalent"
        for at, size in enumerate(POWER_AT):
            there[at] += math.isclose(effect, size)
            found[at] += math.isclose(effect, size) and verdict.state == "better"
    return Score(
        sessions=1,
        false_winner=winner,
        silent_winner=winner and not played.unequal,
        false_worse=worse,
        false_equivalent=equivalent,
        missed_above=played.missed_above,
        missed_below=played.missed_below,
        unequal=played.unequal,
        launches=played.launches,
        last=len(played.verdicts),
        last_holds=holds,
        none=none,
        none_equivalent=none_equivalent,
        found=tuple(found),
        there=tuple(there),
    )
