"""The bounds against the notes' simulated table, against an exact integral, and against simulation of their own."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from tuning.verdict.boundary import bar, bars, bounds, kappa, spent
from tuning.verdict.design import baseline_launches
from tuning.verdict.records import Rules

# (candidates, blocks): u_2, u_3, …; by simulation of at most 200,000 sessions, to two digits.
TABLE = {
    (1, 2): (1.64,),
    (1, 3): (2.18, 1.68),
    (1, 4): (2.5, 2.07, 1.71),
    (1, 6): (2.91, 2.55, 2.25, 1.98, 1.73),
    (2, 4): (2.72, 2.33, 1.98),
    (3, 4): (2.86, 2.48, 2.16),
    (3, 5): (3.07, 2.72, 2.44, 2.18),
    (6, 4): (3.06, 2.72, 2.42),
    (6, 6): (3.4, 3.13, 2.87, 2.65, 2.44),
    (12, 2): (2.59,),
    (12, 3): (3.01, 2.64),
    (12, 4): (3.26, 2.95, 2.67),
    (12, 5): (3.44, 3.16, 2.91, 2.67),
    (27, 4): (3.49, 3.19, 2.93),
    (27, 5): (3.67, 3.4, 3.16, 2.93),
}


@pytest.mark.parametrize(("candidates", "blocks"), TABLE)
def test_the_bounds_are_those_of_the_table(candidates: int, blocks: int) -> None:
    found = bounds(candidates, blocks, baseline_launches(candidates))
    assert found == pytest.approx(TABLE[candidates, blocks], abs=0.02)


@pytest.mark.parametrize(("candidates", "blocks"), [(1, 2), (3, 4), (12, 4), (12, 6), (27, 6)])
def test_the_first_bound_is_dunnetts(candidates: int, blocks: int) -> None:
    """P(max_j C_j − B > u√(2(1 + 1/r))) by integrating over B; where the table strays further, this is right."""
    r = baseline_launches(candidates)
    u = bounds(candidates, blocks, r)[0]
    scale = (2 * (1 + 1 / r)) ** 0.5
    sd = (2 / r) ** 0.5
    below, _ = integrate.quad(
        lambda b: stats.norm.pdf(b, scale=sd) * stats.norm.cdf((u * scale + b) / 2**0.5) ** candidates, -9 * sd, 9 * sd
    )
    assert 1 - below == pytest.approx(spent(2, blocks, 0.05), rel=0.03)


def test_with_all_blocks_at_once_one_candidate_has_the_normal_point() -> None:
    assert bounds(1, 2, 1)[0] == pytest.approx(stats.norm.isf(0.05), abs=0.005)


@pytest.mark.parametrize(("candidates", "blocks"), [(1, 4), (12, 4), (6, 6), (30, 10)])
def test_simulated_sessions_spend_the_error_as_planned(candidates: int, blocks: int) -> None:
    r, sessions = baseline_launches(candidates), 60_000
    rng = np.random.default_rng(11)
    sums, base = np.zeros((sessions, candidates)), np.zeros(sessions)
    crossed = np.zeros(sessions, dtype=bool)
    found = bounds(candidates, blocks, r)
    for n in range(1, blocks + 1):
        sums += rng.standard_normal(sums.shape)
        base += rng.standard_normal(sessions) / r**0.5
        if n >= 2:
            crossed |= (sums.max(axis=1) - base) / (n * (1 + 1 / r)) ** 0.5 > found[n - 2]
            expected = spent(n, blocks, 0.05)
            assert crossed.mean() == pytest.approx(expected, abs=4 * (expected / sessions) ** 0.5)


def test_bounds_fall_over_the_looks_and_rise_with_the_candidates() -> None:
    for candidates, blocks in ((12, 6), (40, 13)):
        assert all(earlier > later for earlier, later in pairwise(bounds(candidates, blocks, 3)))
    assert bounds(3, 4, 2) < bounds(6, 4, 2) < bounds(9, 4, 2)
    assert bounds(6, 4, 2, 0.025) > bounds(6, 4, 2, 0.05)


def test_there_are_no_random_numbers_in_them() -> None:
    bounds.cache_clear()
    once = bounds(5, 3, 2)
    bounds.cache_clear()
    assert bounds(5, 3, 2) == once


def test_the_margin_for_unequal_noise() -> None:
    assert [kappa(k) for k in (1, 10, 11, 15, 16, 27)] == [1.12, 1.12, 1.08, 1.08, 1.07, 1.07]
    assert {kappa(k, strict=True) for k in (1, 12, 27)} == {1.25}


def test_bars_are_bounds_with_the_margin() -> None:
    rules, u = Rules(12, 4), bounds(12, 4, 3)
    assert bars(rules) == pytest.approx([1.5 * u[0], 1.08 * u[1], 1.08 * u[2]])  # more at the first of several looks
    assert bars(replace(rules, strict=True)) == pytest.approx([1.5 * u[0], 1.25 * u[1], 1.25 * u[2]])
    assert bars(Rules(12, 2)) == pytest.approx([1.08 * bounds(12, 2, 3)[0]])
    assert bars(Rules(2, 3)) == pytest.approx([1.12 * bound for bound in bounds(2, 3, 1)])
    assert [bar(rules, n) for n in (0, 1, 2, 4)] == [None, None, bars(rules)[0], bars(rules)[2]]
    assert bars(Rules(3, 1)) == ()
    with pytest.raises(IndexError):
        bar(rules, 5)


def test_several_workloads_share_the_error() -> None:
    one, two = Rules(12, 4), Rules(12, 4, workloads=2)
    assert bars(two) == bars(replace(one, error=0.025))
    many = replace(two, divide="comparisons")
    # Whatever their correlation against a common baseline: the first asks a little more.
    assert all(a > b > c for a, b, c in zip(bars(two), bars(many), bars(one), strict=True))


@pytest.mark.parametrize("wrong", [(0, 4, 1), (3, 0, 1), (3, 4, 0), (3, 14, 1)])
def test_impossible_sessions_are_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError):
        bounds(*wrong)
