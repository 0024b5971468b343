import math

import numpy as np
import pytest
from scipy import stats

from tuning.verdict.boundary import bar
from tuning.verdict.constraint import LimitVerdict, is_winner, judge_limit
from tuning.verdict.records import LaunchValue, Rules, Verdict

RULES = Rules(3, 4)


def launches(levels: dict[int, float], sd: float = 0.1, blocks: int = 4, seed: int = 1) -> list[LaunchValue]:
    rng = np.random.default_rng(seed)
    return [
        LaunchValue(b, g, math.log(level) + sd * float(rng.standard_normal()))
        for b in range(blocks)
        for g, level in levels.items()
    ]


def test_far_from_the_limit_it_is_said() -> None:
    found = judge_limit(launches({0: 500, 1: 250, 2: 1000, 3: 490}), 500, RULES, 4, (1, 2, 3))
    assert [found[g].state for g in (1, 2)] == ["holds", "broken"]
    assert found[3].state in ("undecided", "implausible")
    assert found[1].distance == pytest.approx(-0.5, abs=0.1)
    assert found[1].high is not None
    assert found[1].high < 500
    assert found[2].low is not None
    assert found[2].low > 500


def test_the_numbers_by_hand() -> None:
    values = launches({1: 400, 2: 450}, sd=0.2)
    logs = {g: np.array([v.value for v in values if v.configuration == g]) for g in (1, 2)}
    average = np.mean([x.var(ddof=1) for x in logs.values()])
    se = math.sqrt((6 * average + 3 * logs[1].var(ddof=1)) / 9 / 4)
    c = bar(RULES, 4)
    half = stats.t.isf(stats.norm.sf(c), 9) * se
    found = judge_limit(values, 500, RULES, 4, [1])[1]
    assert found.level == pytest.approx(math.exp(logs[1].mean()))
    assert found.low == pytest.approx(math.exp(logs[1].mean() - half))
    assert found.high == pytest.approx(math.exp(logs[1].mean() + half))


@pytest.mark.parametrize("seed", range(20))
def test_the_state_is_where_the_interval_lies(seed: int) -> None:
    for at_most in (True, False):
        values = launches({1: 300, 2: 430, 3: 700}, seed=seed)
        for found in judge_limit(values, 450, RULES, 3, (1, 2, 3), at_most).values():
            assert found.low is not None
            assert found.high is not None
            below, above = found.high < 450, found.low > 450
            assert (found.state == "holds") == (below if at_most else above)
            assert (found.state == "broken") == (above if at_most else below)


def test_at_least_is_the_mirror() -> None:
    values = launches({1: 300, 2: 430, 3: 700})
    turned = [LaunchValue(v.block, v.configuration, -v.value) for v in values]
    one = judge_limit(values, 450, RULES, 4, (1, 2, 3))
    other = judge_limit(turned, 1 / 450, RULES, 4, (1, 2, 3), at_most=False)
    assert [one[g].state for g in (1, 2, 3)] == [other[g].state for g in (1, 2, 3)]


def test_a_limit_that_hardly_holds_lets_the_candidate_leave() -> None:
    values = launches({1: 600, 2: 500, 3: 500}, sd=0.15)
    assert judge_limit(values, 500, RULES, 2, [1])[1].state == "implausible"


def test_too_little_is_undecided() -> None:
    values = launches({1: 100}, blocks=1)
    found = judge_limit(values, 500, RULES, 1, (1, 2))
    assert (found[1].state, found[1].low) == ("undecided", None)
    assert found[1].level == pytest.approx(100, rel=0.5)
    assert found[2] == LimitVerdict("undecided", None, None, None, None, 0)
    with pytest.raises(ValueError):
        judge_limit(values, 0, RULES, 1, [1])


def test_without_noise_a_limit_met_to_the_digit_holds() -> None:
    values = [LaunchValue(b, 1, math.log(500)) for b in range(4)]
    assert judge_limit(values, 500, RULES, 4, [1])[1].state == "holds"


def test_a_winner_is_better_and_keeps_its_limits() -> None:
    better, same = (Verdict(state, 0.1, 0.05, 0.15, 4) for state in ("better", "equivalent"))
    holds, open_ = (LimitVerdict(state, 400, 300, 450, -0.2, 4) for state in ("holds", "undecided"))
    assert is_winner(better, [holds, holds])
    assert is_winner(better, [])
    assert not is_winner(better, [holds, open_])
    assert not is_winner(same, [holds])
