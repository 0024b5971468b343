import math
import random

import pytest

from tuning.statistics import (
    Estimate,
    bounds,
    difference,
    level_interval,
    mean,
    mean_estimate,
    mean_log,
    paired_ratio,
    sd,
    t_interval,
    t_quantile,
)


def test_quantiles_are_those_of_the_table() -> None:
    """Two-sided 95 % points of Student's t, as printed in every table."""
    for df, point in ((1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (1e6, 1.960)):
        assert t_quantile(0.975, df) == pytest.approx(point, abs=5e-4)
    assert t_quantile(0.025, 3) == pytest.approx(-t_quantile(0.975, 3))


def test_the_interval_of_a_level_is_taken_on_the_logs() -> None:
    found = level_interval([15_000.0, 12_000.0])
    assert found.mean == 13_500.0
    assert found.low is not None
    assert found.high is not None
    # ln 15000 and ln 12000: mean 9.504234, sd 0.157786, half width 12.7062 x 0.157786 / sqrt(2) = 1.417665
    assert found.low == pytest.approx(math.exp(9.504234 - 1.417665), rel=1e-4)
    assert found.high == pytest.approx(math.exp(9.504234 + 1.417665), rel=1e-4)
    assert level_interval([0.0, 2.0]) == t_interval([0.0, 2.0])
    assert level_interval([3.0]).low is None


def test_a_mean_has_its_t_interval() -> None:
    found = t_interval([9.0, 10.0, 11.0, 14.0])
    assert (found.n, found.mean) == (4, 11.0)
    assert found.sd == pytest.approx(math.sqrt(14 / 3))
    half = 3.18245 * math.sqrt(14 / 3) / 2
    assert (found.low, found.high) == (pytest.approx(11 - half, abs=1e-4), pytest.approx(11 + half, abs=1e-4))


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = t_interval([1.0, 2.0, 3.0], 0.9), t_interval([1.0, 2.0, 3.0], 0.99)
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    found = t_interval([5.0])
    assert (found.mean, found.sd, found.low, found.high) == (5.0, None, None, None)
    assert sd([5.0]) is None
    with pytest.raises(ValueError, match="nothing"):
        mean([])


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    draw = random.Random(4)
    hits = 0
    for _ in range(2000):
        found = t_interval([draw.gauss(3, 1) for _ in range(3)])
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 3 <= found.high
    assert 0.93 < hits / 2000 < 0.97  # standard error 0.005


def test_effects_are_paired_within_blocks() -> None:
    """A drift that both meet is no effect: twice as fast in block 1, and 2 % ahead in each."""
    baseline = {0: [math.log(100)], 1: [math.log(200)], 2: [math.log(150)]}
    candidate = {block: [logs[0] + math.log(1.02)] for block, logs in baseline.items()}
    found = paired_ratio(candidate, baseline)
    assert found is not None
    assert found.n == 3
    for value in (found.mean, found.low, found.high):
        assert value == pytest.approx(0.02)


def test_the_interval_is_the_paired_t_on_logs() -> None:
    differences = [0.01, 0.03, 0.05]
    found = paired_ratio({block: [d] for block, d in enumerate(differences)}, {0: [0.0], 1: [0.0], 2: [0.0]})
    half = 4.302653 * 0.02 / math.sqrt(3)
    assert found is not None
    assert found.mean == pytest.approx(math.expm1(0.03))
    assert found.low == pytest.approx(math.expm1(0.03 - half), abs=1e-6)
    assert found.high == pytest.approx(math.expm1(0.03 + half), abs=1e-6)


def test_the_baselines_launches_of_a_block_are_averaged() -> None:
    found = paired_ratio({0: [math.log(110)]}, {0: [math.log(100), math.log(121)]})
    assert found is not None
    assert found.mean == pytest.approx(0.0)
    assert (found.n, found.low, found.high) == (1, None, None)


def test_blocks_that_only_one_of_them_has_say_nothing() -> None:
    found = paired_ratio({0: [0.1], 1: [9.0], 2: []}, {0: [0.0], 2: [0.0], 3: [0.0]})
    assert found is not None
    assert (found.n, found.mean) == (1, pytest.approx(math.expm1(0.1)))
    assert paired_ratio({1: [0.1]}, {0: [0.0]}) is None


def test_what_has_no_logarithm_has_no_effect() -> None:
    assert mean_log([1.0, math.e**2]) == pytest.approx(1.0)
    assert mean_log([1.0, 0.0]) is None
    assert mean_log([-1.0]) is None
    assert mean_log([]) is None


def test_an_interval_beyond_all_numbers_is_none() -> None:
    found = paired_ratio({0: [0.0], 1: [700.0]}, {0: [0.0], 1: [0.0]})
    assert found is not None
    assert found.high is None


def test_the_difference_of_two_means_is_welchs() -> None:
    from scipy import stats

    one, other = [9.0, 10.0, 11.0, 14.0], [7.5, 7.9, 8.1]
    found = difference(mean_estimate(one), mean_estimate(other))
    expected = stats.ttest_ind(one, other, equal_var=False)
    assert found.value == pytest.approx(mean(one) - mean(other))
    assert found.df == pytest.approx(expected.df)
    assert bounds(found, 0.9) == pytest.approx(tuple(expected.confidence_interval(0.9)))


def test_a_difference_knows_no_more_than_its_worse_side() -> None:
    """The degrees lie between those of the side that decides and the sum of both."""
    assert difference(Estimate(1.0, 0.5, 3.0), Estimate(0.0, 1e-9, 50.0)).df == pytest.approx(3.0)
    assert difference(Estimate(1.0, 0.5, 3.0), Estimate(0.0, 0.5, 3.0)).df == pytest.approx(6.0)


def test_without_a_standard_error_on_both_sides_there_is_no_interval() -> None:
    assert bounds(difference(mean_estimate([1.0]), mean_estimate([1.0, 2.0]))) is None
    assert bounds(difference(Estimate(2.0, 0.0, 1.0), Estimate(0.5, 0.0, 1.0))) == (1.5, 1.5)
