import numpy as np
import pytest

from tests.tuning.verdict.layouts import incomplete, reference, session
from tuning.verdict.layout import comparable, connected, fit
from tuning.verdict.records import LaunchValue


@pytest.mark.parametrize("seed", range(60))
def test_any_connected_layout_is_fitted_as_by_lstsq(seed: int) -> None:
    values = incomplete(np.random.default_rng(seed))
    if not values:
        pytest.fail("the generator left nothing")
    fitted = fit(values)
    differences, residuals, leverages, df = reference(values)
    zero = fitted.configurations.index(0)
    for row, g in enumerate(fitted.configurations):
        assert fitted.means[row] - fitted.means[zero] == pytest.approx(differences[g], abs=1e-10)
    assert fitted.residuals == pytest.approx(residuals, abs=1e-10)
    assert fitted.leverages == pytest.approx(leverages, abs=1e-10)
    assert fitted.df == df


@pytest.mark.parametrize("seed", range(20))
def test_leverages_sum_to_the_parameters_and_block_effects_to_zero(seed: int) -> None:
    fitted = fit(incomplete(np.random.default_rng(seed)))
    assert fitted.leverages.sum() == pytest.approx(len(fitted.configurations) + len(fitted.blocks) - 1)
    assert fitted.effects.sum() == pytest.approx(0, abs=1e-10)
    assert fitted.by_configuration(fitted.residuals) == pytest.approx(0 * fitted.launches, abs=1e-10)


def test_a_full_layout_compares_means() -> None:
    values = session(np.random.default_rng(3), 4, 3, baselines=2)
    fitted = fit(values)
    for g in (1, 2, 3, 4):
        own = np.mean([v.value for v in values if v.configuration == g])
        base = np.mean([v.value for v in values if v.configuration == 0])
        assert fitted.means[g] - fitted.means[0] == pytest.approx(own - base)


def test_residuals_of_another_column_are_those_of_lstsq() -> None:
    rng = np.random.default_rng(8)
    values = incomplete(rng)
    other = rng.standard_normal(len(values))
    again = [LaunchValue(v.block, v.configuration, float(y)) for v, y in zip(values, other, strict=True)]
    assert fit(values).residuals_of(other) == pytest.approx(reference(again)[1], abs=1e-10)


def test_a_block_without_the_baseline_is_left_out() -> None:
    values = [LaunchValue(0, 0, 1.0), LaunchValue(0, 1, 1.1), LaunchValue(1, 1, 1.3), LaunchValue(2, 0, 1.0)]
    found = comparable(values)
    assert found.dropped == (values[2],)
    assert found.kept == (values[0], values[1], values[3])


def test_what_nothing_links_to_the_baseline_is_left_out() -> None:
    values = [LaunchValue(0, 0, 1.0), LaunchValue(0, 1, 1.1), LaunchValue(1, 1, 1.3), LaunchValue(1, 2, 1.3)]
    alone = [LaunchValue(2, 3, 1.0), LaunchValue(2, 4, 1.0), LaunchValue(3, 4, 1.0)]
    assert connected(values + alone).kept == tuple(values)  # 1 links block 1, and 2 in it
    assert connected(values + alone).dropped == tuple(alone)
