"""The price of certainty, before a session starts: what so many blocks can see, and what they will cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tuning.verdict.boundary import FIRST_LOOK, bars
from tuning.verdict.decisions import LEAVES, margin, worthwhile
from tuning.verdict.design import baseline_launches, launches_in_block
from tuning.verdict.layout import normal_inverse
from tuning.verdict.moderation import PRIOR_DF
from tuning.verdict.records import Rules
from tuning.verdict.student import t_of_z

if TYPE_CHECKING:
    from numpy.typing import NDArray

POWER = 0.8
SESSIONS = 1000
SEED = 20261130


@dataclass(frozen=True, slots=True)
class Price:
    """Of a session of at most `blocks` blocks. `smallest_effect` (ratio − 1, of the better direction's size) is found
    better in 80 % of sessions, None with one block; `expected` if no candidate differs; money None without a price."""

    blocks: int
    smallest_effect: float | None
    launches_expected: float
    launches_at_most: int
    hours_expected: float
    hours_at_most: float
    money_expected: float | None
    money_at_most: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """Simulated sessions' mean: `launches` in all, candidates in play at each block, `baseline` launches of a block
    that is made, and the share of sessions in which each candidate was found better."""

    launches: float
    in_play: tuple[float, ...]
    baseline: tuple[float, ...]
    better: tuple[float, ...]


def price(sd: float, rules: Rules, seconds_per_launch: float, price_per_hour: float | None = None) -> Price:
    """What `rules` see and cost with noise `sd` of a launch's mean (log scale, as `Noise.sd`).

    `seconds_per_launch` holds start, warm-up and runs of all workloads. At most: no candidate leaves; a launch that
    must be done again comes on top.
    """
    most = rules.blocks * launches_in_block(rules.candidates)
    expected = course(sd, rules).launches
    hours = seconds_per_launch / 3600
    money = None if price_per_hour is None else price_per_hour * hours
    return Price(
        blocks=rules.blocks,
        smallest_effect=smallest_effect(sd, rules),
        launches_expected=expected,
        launches_at_most=most,
        hours_expected=expected * hours,
        hours_at_most=most * hours,
        money_expected=None if money is None else expected * money,
        money_at_most=None if money is None else most * money,
    )


def prices(
    sd: float,
    rules: Rules,
    seconds_per_launch: float,
    price_per_hour: float | None = None,
    blocks: Sequence[int] = (2, 3, 4, 5, 6),
) -> tuple[Price, ...]:
    """`price` for each number of blocks, for a person to choose from."""
    return tuple(price(sd, replace(rules, blocks=n), seconds_per_launch, price_per_hour) for n in blocks)


def smallest_effect(sd: float, rules: Rules) -> float | None:
    """The effect that `rules.blocks` blocks find better in 80 % of sessions, as ratio − 1; None with one block.

    d = δ·se at the last look, where a noncentral t with ν degrees and noncentrality δ exceeds the bar's t with
    probability 0.8; se and ν are those of the layout to be expected while the other candidates, all like the baseline,
    leave. The textbook power of a t test, here an approximation: in simulated sessions 76 to 82 % find it. Earlier
    looks add little, since little error is spent there.
    """
    import numpy as np
    from scipy.special import nctdtrinc

    k, n = rules.candidates, rules.blocks
    if n < FIRST_LOOK:
        return None
    usual = course(sd, rules)
    others = [np.array(usual.in_play) / k] * (k - 1)
    factor, nu = expected_precision(np.array([usual.baseline, np.ones(n), *others]))
    d = float(nctdtrinc(nu, 1 - POWER, t_of_z(bars(rules)[-1], nu))) * sd * math.sqrt(factor)
    return math.expm1(d) if rules.larger_is_better else -math.expm1(-d)


def expected_precision(counts: "NDArray[Any]") -> tuple[float, float]:
    """se²/σ² and ν of `moderation.comparison` where every launch has variance σ²: row 1 against row 0, the baseline.

    `counts` are launches by configuration and block, fractions where they are expectations.
    """
    launches = counts.sum(axis=1)
    share, inverse = counts / launches[:, None], normal_inverse(counts)
    # h_gb = 1/N_g + (u_b − P_g)'M⁻¹(u_b − P_g), multiplied out
    through = share @ inverse
    leverages = 1 / launches[:, None] + inverse.diagonal() - 2 * through + (through * share).sum(axis=1)[:, None]
    free = (counts * (1 - leverages)).sum(axis=1).clip(min=0)
    base, own = 1 / launches[:2]
    apart = share[1] - share[0]
    nu = (own + base) ** 2 / (own**2 / (PRIOR_DF + free[1]) + base**2 / (PRIOR_DF + free[0]))
    return float(own + base + apart @ inverse @ apart), float(max(min(nu, free.sum()), 1.0))


@lru_cache(maxsize=256)
def course(sd: float, rules: Rules, effects: tuple[float, ...] = ()) -> Course:
    """How sessions go on average if the candidates' true effects (ratios − 1) are `effects`, 0 where none is given.

    1,000 sessions with a fixed seed: normal launches, the bars and leaving rules of `decisions` on t statistics whose
    variance is drawn anew at each look with the degrees of the full layout. In a fraction of a second as many launches
    as the whole procedure makes, to one or two in forty.
    """
    import numpy as np

    k, n = rules.candidates, rules.blocks
    rng = np.random.default_rng(SEED)
    truth = np.zeros(k)
    sign = 1 if rules.larger_is_better else -1
    truth[: len(effects)] = [sign * math.log1p(effect) for effect in effects]
    r_of = np.array([0, *(baseline_launches(count) for count in range(1, k + 1))])
    full = np.ones((k + 1, n))
    full[0] = baseline_launches(k)
    c, m, e = bars(rules), margin(rules), worthwhile(rules)
    alive, better = np.ones((SESSIONS, k), dtype=bool), np.zeros((SESSIONS, k), dtype=bool)
    sums, base, n_0 = np.zeros((SESSIONS, k)), np.zeros(SESSIONS), np.zeros(SESSIONS)
    launches, baseline, in_play = np.zeros(SESSIONS), list[float](), list[float]()
    for block in range(1, n + 1):
        playing = alive.sum(axis=1)
        launches += playing + r_of[playing]
        in_play.append(float(playing.mean()))
        r = np.maximum(r_of[playing], 1)
        baseline.append(float(r.mean()))
        sums += truth + rng.standard_normal((SESSIONS, k)) * sd
        base += rng.standard_normal(SESSIONS) * sd * np.sqrt(r)
        n_0 += r
        if block < FIRST_LOOK:
            continue
        nu = expected_precision(full[:, :block])[1]
        d = sums / block - (base / n_0)[:, None]
        se = sd * np.sqrt(1 / block + 1 / n_0)[:, None] * np.sqrt(rng.chisquare(nu, (SESSIONS, k)) / nu)
        sure, leaves = t_of_z(c[block - FIRST_LOOK], nu) * se, t_of_z(LEAVES, nu) * se
        same = np.abs(d) + sure < m
        better |= alive & ~same & (d > sure)
        out = same | (np.abs(d) > sure)
        if not rules.decide_all:
            out |= e - d > leaves
        alive &= ~out
    shares = tuple(float(share) for share in better.mean(axis=0))
    return Course(float(launches.mean()), tuple(in_play), tuple(baseline), shares)
