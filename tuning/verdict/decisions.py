"""From a difference and its noise to what is said of the candidate."""

import math
from collections.abc import Sequence
from typing import Literal

from tuning.verdict.moderation import Comparison
from tuning.verdict.records import Range, Rules, State
from tuning.verdict.student import ratio, t_of_z, z_of_t

LEAVES = 1.645  # Φ⁻¹(0.95), unadjusted
POWER = 0.84  # Φ⁻¹(0.8)


def margin(rules: Rules) -> float:
    """The margin as a log difference, the same on both sides: ln(1 + M), so that a ratio inside it lies inside ±M."""
    return math.log1p(rules.margin)


def worthwhile(rules: Rules) -> float:
    """The smallest effect worth having as a log gain (above 0): of a metric that rises ln(1 + e), else −ln(1 − e)."""
    return math.log1p(rules.smallest_effect) if rules.larger_is_better else -math.log1p(-rules.smallest_effect)


def gain(found: Comparison, rules: Rules) -> float:
    """The log difference, positive where the candidate is better."""
    return found.difference if rules.larger_is_better else -found.difference


def decide(found: Comparison, bar: float, rules: Rules) -> tuple[State, Literal["better", "worse"] | None]:
    """What is said at a look with this bar, and which of better and worse holds of an equivalent candidate, too.

    With d the gain and Z as in `z_of_t`: equivalent if Z((M − d)/se) and Z((M + d)/se) both exceed the bar (two
    one-sided tests: Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657-680; an intersection-union test, so that no
    further share of the error is due: Berger 1982, Technometrics 24:295-300); it is said first, since a sure difference
    inside the margin is none that matters. Better if Z(d/se) exceeds it, worse if Z(−d/se) does. Implausible, unless
    `decide_all`, if Z((e − d)/se) > 1.645: a non-binding rule for futility, whose use cannot cost a false winner.
    """
    d, m = gain(found, rules), margin(rules)

    def z(distance: float) -> float:
        if found.se == 0:
            return math.copysign(math.inf, distance) if distance else 0.0
        return z_of_t(distance / found.se, found.df)

    direction: Literal["better", "worse"] | None = "better" if z(d) > bar else "worse" if z(-d) > bar else None
    if z(m - d) > bar and z(m + d) > bar:
        return "equivalent", direction
    if direction is not None:
        return direction, None
    if not rules.decide_all and z(worthwhile(rules) - d) > LEAVES:
        return "implausible", None
    return "undecided", None


def interval(found: Comparison, bar: float) -> Range:
    """d ± t_ν⁻¹(Φ(bar))·se as ratios − 1: it holds over all looks and candidates, and agrees with `decide`.

    The repeated confidence interval (Jennison & Turnbull 1984, Controlled Clin. Trials 5:33-45).
    """
    half = t_of_z(bar, found.df) * found.se
    return Range(ratio(found.difference), ratio(found.difference - half), ratio(found.difference + half))


def more_blocks(found: Comparison, blocks: int, later: Sequence[float], rules: Rules) -> int | None:
    """About how many more blocks decide the candidate with 80 % chance, if its true effect is the one found.

    `later` are the bars of the looks to come. With s_1 = se·√n, the smallest N > n with
    |d| − h > 0.84·s_1/√N (better or worse) or M − |d| − h > 0.84·s_1/√N (equivalent), h = t_{νN/n}⁻¹(Φ(c_N))·s_1/√N.
    None where no look to come is enough. Method of the project's notes: optimistic at the first look, where the
    estimates are selected (60 to 69 % decided by then), about right later.
    """
    distance, of_one = abs(found.difference), found.se * math.sqrt(blocks)
    for more, bar in enumerate(later, start=1):
        n = blocks + more
        se = of_one / math.sqrt(n)
        short = (t_of_z(bar, found.df * n / blocks) + POWER) * se
        if distance > short or margin(rules) - distance > short:
            return more
    return None
