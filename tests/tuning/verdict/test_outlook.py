import math
from dataclasses import replace

import numpy as np
import pytest

from tests.tuning.verdict.layouts import incomplete
from tuning.verdict.calibration import launch_value_sd
from tuning.verdict.layout import fit
from tuning.verdict.moderation import Variances, comparison
from tuning.verdict.outlook import course, expected_precision, price, prices, smallest_effect
from tuning.verdict.records import Rules

SD = launch_value_sd(0.01, 0.009, 3)

# Simulated with the whole procedure for the notes: (candidates, blocks): launches if none differs, power at +3 %.
MEASURED = {
    (1, 4): (7, 0.74),
    (6, 4): (22, 0.87),
    (12, 2): (30, 0.42),
    (12, 3): (36, 0.66),
    (12, 4): (39, 0.81),
    (12, 6): (42, 0.95),
    (27, 4): (77, 0.74),
}


@pytest.mark.parametrize(("candidates", "blocks"), MEASURED)
def test_the_course_is_that_of_the_whole_procedure(candidates: int, blocks: int) -> None:
    launches, power = MEASURED[candidates, blocks]
    rules = Rules(candidates, blocks)
    assert course(SD, rules).launches == pytest.approx(launches, rel=0.04, abs=0.8)
    assert course(SD, rules, (math.expm1(0.03),)).better[0] == pytest.approx(power, abs=0.06)


def test_what_a_session_can_see_is_what_it_finds() -> None:
    """The measured power at 3 % is 81 % with twelve candidates and four blocks."""
    effect = smallest_effect(SD, Rules(12, 4))
    assert effect == pytest.approx(0.03, abs=0.0015)


def test_more_blocks_see_more_and_more_noise_less() -> None:
    seen = [smallest_effect(SD, Rules(12, n)) for n in (2, 3, 4, 5, 6)]
    assert seen == sorted(seen, reverse=True)  # type: ignore[type-var]
    assert smallest_effect(2 * SD, Rules(12, 4)) > 1.5 * smallest_effect(SD, Rules(12, 4))  # type: ignore[operator]
    assert smallest_effect(SD, Rules(12, 1)) is None
    assert smallest_effect(0.0, Rules(12, 4)) == 0


def test_a_latencys_smallest_effect_is_a_share_of_it() -> None:
    rate = smallest_effect(SD, Rules(1, 4, decide_all=True))
    latency = smallest_effect(SD, Rules(1, 4, decide_all=True, larger_is_better=False))
    assert rate is not None
    assert latency == pytest.approx(rate / (1 + rate))


@pytest.mark.parametrize("seed", range(15))
def test_the_expected_precision_of_a_layout_is_that_of_its_fit(seed: int) -> None:
    """Whole launches of equal noise: se and degrees of `comparison`."""
    fitted = fit(incomplete(np.random.default_rng(seed)))
    if fitted.df < 1:
        return
    free = fitted.by_configuration(1 - fitted.leverages)
    equal = Variances(
        1.0,
        float(fitted.df),
        {g: (1.0, 6 + float(f)) for g, f in zip(fitted.configurations, free, strict=True)},
        False,
    )
    one = comparison(fitted, equal, fitted.configurations[1])
    factor, nu = expected_precision(fitted.share * fitted.launches[:, None])
    assert factor == pytest.approx(one.se**2)
    assert nu == pytest.approx(one.df)


def test_a_full_layout_has_the_degrees_of_the_formula() -> None:
    k, r, n = 12, 3, 4
    counts = np.ones((k + 1, n))
    counts[0] = r
    factor, nu = expected_precision(counts)
    assert factor == pytest.approx(1 / n + 1 / (n * r))
    f_j, f_0 = (n - 1) * (1 - 1 / (k + r)), n * r - 1 - r * (n - 1) / (k + r)
    a, b = 1 / n, 1 / (n * r)
    assert nu == pytest.approx((a + b) ** 2 / (a**2 / (6 + f_j) + b**2 / (6 + f_0)))


def test_the_price_in_hours_and_money() -> None:
    found = price(SD, Rules(12, 4), seconds_per_launch=120, price_per_hour=2.5)
    assert found.launches_at_most == 60
    assert found.hours_at_most == pytest.approx(2.0)
    assert found.money_at_most == pytest.approx(5.0)
    assert found.launches_expected < 45
    assert found.hours_expected == pytest.approx(found.launches_expected / 30)
    assert found.money_expected == pytest.approx(2.5 * found.hours_expected)
    assert price(SD, Rules(12, 4), 120).money_expected is None


def test_deciding_all_costs_more() -> None:
    few, all_ = Rules(12, 4), Rules(12, 4, decide_all=True)
    assert course(SD, all_).launches > 1.3 * course(SD, few).launches
    assert course(SD, replace(all_, margin=0.2)).launches == pytest.approx(30, abs=0.5)


def test_a_choice_of_blocks() -> None:
    choice = prices(SD, Rules(6, 4), 60, blocks=(2, 3, 4))
    assert [one.blocks for one in choice] == [2, 3, 4]
    assert [one.launches_at_most for one in choice] == [16, 24, 32]
    assert choice[0] == price(SD, Rules(6, 2), 60)
