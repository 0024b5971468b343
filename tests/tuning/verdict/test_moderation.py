import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.tuning.verdict.layouts import design, incomplete, reference, session
from tuning.verdict.layout import fit
from tuning.verdict.moderation import Variances, comparison, noise, pooled, variances
from tuning.verdict.records import LaunchValue, Prior


@pytest.mark.parametrize("seed", range(30))
def test_one_candidate_is_a_paired_t_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = session(rng, 1, int(rng.integers(2, 7)), effects={1: 0.01})
    fitted = fit(values)
    found = variances(fitted)
    assert found is not None
    one = comparison(fitted, found, 1)
    own, base = ([v.value for v in sorted(values, key=lambda v: v.block) if v.configuration == g] for g in (1, 0))
    paired = stats.ttest_rel(own, base)
    assert one.difference / one.se == pytest.approx(paired.statistic, rel=1e-9)
    assert one.df == paired.df


@pytest.mark.parametrize("seed", range(30))
def test_degrees_of_the_configurations_sum_to_the_residuals(seed: int) -> None:
    values = incomplete(np.random.default_rng(seed))
    fitted = fit(values)
    found = variances(fitted)
    _, residuals, _, df = reference(values)
    if df < 1:
        assert found is None
        return
    assert found is not None
    assert sum(degrees - 6 for _, degrees in found.of.values()) == pytest.approx(df)
    assert found.pooled == pytest.approx(float(residuals @ residuals) / df)
    # Each moderated variance lies between its own and the pooled one, six degrees from the latter.
    for g, spread in noise(fitted, found).by_configuration.items():
        assert spread.moderated_sd == pytest.approx(found.of[g][0] ** 0.5)
        if spread.sd is not None:
            ends = sorted([spread.sd**2, found.pooled])
            assert ends[0] * (1 - 1e-9) <= found.of[g][0] <= ends[1] * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_with_equal_variances_the_error_is_that_of_least_squares(seed: int) -> None:
    """se² of a contrast is s²·c'(X'X)⁻c, also on an incomplete layout: a + b + x add up to it."""
    values = incomplete(np.random.default_rng(seed))
    fitted = fit(values)
    equal = Variances(1.0, 100.0, dict.fromkeys(fitted.configurations, (1.0, 100.0)), False)
    x = design(values)
    covariance = np.linalg.pinv(x.T @ x)
    for row, g in enumerate(fitted.configurations):
        if g:
            contrast = np.zeros(x.shape[1])
            contrast[row], contrast[0] = 1, -1
            assert comparison(fitted, equal, g).se ** 2 == pytest.approx(contrast @ covariance @ contrast)


def test_degrees_are_welchs() -> None:
    """Between the smaller and the sum; all of one side's where the other has no noise."""
    values = session(np.random.default_rng(1), 2, 4, 2)
    fitted = fit(values)
    a, b = 4.0, 9.0
    both = Variances(2.0, 1000.0, {0: (3.0, a), 1: (3.0, b), 2: (3.0, b)}, False)
    found = comparison(fitted, both, 1).df
    n_j, n_0 = 4, 8
    assert found == pytest.approx((1 / n_j + 1 / n_0) ** 2 / (1 / n_j**2 / b + 1 / n_0**2 / a))
    assert min(a, b) <= found <= a + b
    only_own = Variances(2.0, 1000.0, {0: (0.0, a), 1: (3.0, b), 2: (3.0, b)}, False)
    assert comparison(fitted, only_own, 1).df == pytest.approx(b)
    only_base = Variances(2.0, 1000.0, {0: (3.0, a), 1: (0.0, b), 2: (3.0, b)}, False)
    assert comparison(fitted, only_base, 1).df == pytest.approx(a)


def test_degrees_are_capped_by_the_residuals() -> None:
    values = session(np.random.default_rng(1), 1, 3)
    fitted = fit(values)
    found = variances(fitted)
    assert found is not None
    assert comparison(fitted, found, 1).df == fitted.df == 2


def test_a_noisy_configuration_widens_its_own_comparison() -> None:
    rng = np.random.default_rng(5)
    values = [
        replace(v, value=v.value + 0.05 * rng.standard_normal()) if v.configuration == 1 else v
        for v in session(rng, 5, 5, 2)
    ]
    fitted = fit(values)
    found = variances(fitted)
    assert found is not None
    assert comparison(fitted, found, 1).se > 1.3 * comparison(fitted, found, 2).se


def test_prior_noise_joins_where_it_does_not_contradict() -> None:
    fitted = fit(session(np.random.default_rng(2), 1, 4))
    alone = pooled(fitted)
    assert alone is not None
    like = Prior(math.sqrt(alone[0]), 5)
    assert pooled(fitted, like) == (pytest.approx(alone[0]), 8.0, True)
    larger = Prior(3 * like.sd, 5)
    assert pooled(fitted, larger) == (pytest.approx((3 * alone[0] + 5 * larger.sd**2) / 8), 8.0, True)
    # A claim of a quarter of the noise found here is not believed: F = 16 on 3 and 5 degrees, p = 0.005.
    assert pooled(fitted, Prior(like.sd / 4, 5)) == (alone[0], 3.0, False)


def test_the_gate_is_an_f_test_at_a_quarter() -> None:
    fitted = fit(session(np.random.default_rng(2), 3, 4, 2))
    alone = pooled(fitted)
    assert alone is not None
    edge = (alone[0] / stats.f.isf(0.25, alone[1], 5)) ** 0.5
    assert pooled(fitted, Prior(edge * 1.001, 5))[2] is True  # type: ignore[index]
    assert pooled(fitted, Prior(edge * 0.999, 5))[2] is False  # type: ignore[index]


def test_without_a_degree_of_freedom_nothing_is_said() -> None:
    fitted = fit([LaunchValue(0, 0, 1.0), LaunchValue(0, 1, 1.1)])
    assert variances(fitted) is None
    assert noise(fitted, None).sd is None
    assert noise(fitted, None).by_configuration[1].sd is None
