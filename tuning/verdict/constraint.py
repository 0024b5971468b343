"""Whether a configuration keeps a limit, such as p99 TTFT ≤ 500 ms: its level against a number, not the baseline."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tuning.verdict.boundary import bar
from tuning.verdict.decisions import LEAVES
from tuning.verdict.moderation import PRIOR_DF
from tuning.verdict.records import LaunchValue, Rules, Verdict
from tuning.verdict.student import ratio, t_of_z, z_of_t

LimitState = Literal["holds", "broken", "implausible", "undecided"]


@dataclass(frozen=True, slots=True)
class LimitVerdict:
    """`implausible`: not shown to be broken, but the candidate leaves, since that the limit holds is implausible.

    `level` is the geometric mean over the launches of what one launch says, in the metric's unit, with its interval
    (None before there is one); `distance` is level/bound − 1. The level of a p99 is the mean log p99 of a launch, which
    is not the p99 of all requests together.
    """

    state: LimitState
    level: float | None
    low: float | None
    high: float | None
    distance: float | None
    launches: int


def judge_limit(
    values: Sequence[LaunchValue],
    bound: float,
    rules: Rules,
    blocks: int,
    configurations: Collection[int],
    at_most: bool = True,
    plain: bool = False,
) -> Mapping[int, LimitVerdict]:
    """The limit of each of `configurations` at the look after `blocks` blocks; `bound` > 0 in the metric's unit.

    Per configuration x̄ and s_g² over its N launches (what changes from block to block is in it), s̃² =
    (6·s² + (N − 1)·s_g²)/(6 + N − 1) with s² the average of the s_g², ν = 6 + N − 1 (the form of Smyth 2004, as in
    `moderation`), and Z((ln L − x̄)/(s̃/√N)): holds above the bar, broken below −bar, leaves below −1.645. The sign turns
    where `at_most` is False (goodput ≥ L). `plain`: the values are levels, not logs of them, of a metric that may be 0;
    then x̄, L and the interval stay as they are. Method of the project's notes.
    """
    if not 0 < bound < math.inf:
        raise ValueError("a limit on a level is a number above 0")
    logs: dict[int, list[float]] = {configuration: [] for configuration in configurations}
    for value in values:
        logs.setdefault(value.configuration, []).append(value.value)
    own = {configuration: _variance(found) for configuration, found in logs.items() if len(found) > 1}
    average = sum(own.values()) / len(own) if own else 0.0
    c = bar(rules, blocks)
    return {
        configuration: _judge(logs[configuration], own.get(configuration), average, bound, c, at_most, plain)
        for configuration in configurations
    }


def is_winner(verdict: Verdict, limits: Collection[LimitVerdict]) -> bool:
    """Better, and every limit holds: an intersection-union test, each part at its own error (Berger 1982).

    A false winner of either kind then has at most twice the error; halve `Rules.error` where one must cover both.
    """
    return verdict.state == "better" and all(limit.state == "holds" for limit in limits)


def _judge(
    values: Sequence[float],
    own: float | None,
    average: float,
    bound: float,
    c: float | None,
    at_most: bool,
    plain: bool,
) -> LimitVerdict:
    n = len(values)
    if not n:
        return LimitVerdict("undecided", None, None, None, None, 0)
    centre, limit = math.fsum(values) / n, bound if plain else math.log(bound)
    distance = centre / bound - 1 if plain else ratio(centre - limit)

    def level(value: float) -> float | None:
        return value if plain else _exp(value)

    if own is None or c is None:
        return LimitVerdict("undecided", level(centre), None, None, distance, n)
    df = PRIOR_DF + n - 1
    se = math.sqrt((PRIOR_DF * average + (n - 1) * own) / df / n)
    room = limit - centre if at_most else centre - limit
    # A limit that is met to the digit, without noise, is met.
    z = z_of_t(room / se, df) if se else math.copysign(math.inf, room)
    half = t_of_z(c, df) * se
    state: LimitState = "holds" if z > c else "broken" if z < -c else "implausible" if z < -LEAVES else "undecided"
    return LimitVerdict(state, level(centre), level(centre - half), level(centre + half), distance, n)


def _exp(log: float) -> float | None:
    try:
        return math.exp(log)
    except OverflowError:
        return None


def _variance(values: Sequence[float]) -> float:
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
