from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.tuning.verdict.layouts import incomplete, reference, session
from tuning.verdict.layout import connected, fit
from tuning.verdict.outliers import deleted_residuals, screen
from tuning.verdict.records import LaunchValue


def spoiled(values: list[LaunchValue], configuration: int, block: int, by: float) -> tuple[list[LaunchValue], int]:
    """The session with the first launch of that cell moved, and its place."""
    place = next(i for i, v in enumerate(values) if (v.configuration, v.block) == (configuration, block))
    moved = list(values)
    moved[place] = replace(values[place], value=values[place].value + by)
    return moved, place


@pytest.mark.parametrize("seed", range(25))
def test_a_deleted_residual_is_what_a_fit_without_the_launch_says(seed: int) -> None:
    """t_i = (y_i − prediction without i)/its standard error, by numpy's lstsq with a column of its own for i."""
    values = incomplete(np.random.default_rng(seed))
    fitted = fit(values)
    if fitted.df < 3:
        return
    found = deleted_residuals(fitted)
    for place in range(0, len(values), 3):
        rest = values[:place] + values[place + 1 :]
        if len(connected(rest).kept) < len(rest) or fitted.leverages[place] > 1 - 1e-9:
            continue
        if {v.block for v in rest} != {v.block for v in values}:
            continue
        _, residuals, _, df = reference(rest)
        if df != fitted.df - 1:
            continue
        variance = float(residuals @ residuals) / df
        free = 1 - fitted.leverages[place]
        assert found[place] == pytest.approx(fitted.residuals[place] / (variance * free) ** 0.5, rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_a_bad_launch_is_found_wherever_it_lies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidate = int(rng.integers(0, 13))
    values, place = spoiled(session(rng, 12, 4, 3), candidate, int(rng.integers(0, 4)), -0.105)
    found = screen(values)
    assert found.set_aside == (values[place],)
    assert not found.suspect
    assert len(found.fitted.values) == len(values) - 1


def test_good_launches_stay() -> None:
    assert not any(
        screen(values).set_aside or screen(values).suspect
        for seed in range(150)
        for values in [session(np.random.default_rng(seed), 6, 4, 2)]
    )


def test_after_two_blocks_a_candidate_is_suspect_and_the_baseline_can_be_judged() -> None:
    rng = np.random.default_rng(4)
    values = session(rng, 12, 2, 3)
    of_candidate, _ = spoiled(values, 5, 1, -0.15)
    assert screen(of_candidate).suspect == {5}
    assert screen(of_candidate).set_aside == ()
    assert len(screen(of_candidate).fitted.values) == len(values)
    of_baseline, place = spoiled(values, 0, 1, -0.15)
    assert screen(of_baseline).set_aside == (of_baseline[place],)
    assert not screen(of_baseline).suspect


def test_a_suspect_does_not_hide_another_outlier() -> None:
    values = session(np.random.default_rng(4), 12, 2, 3)
    first, _ = spoiled(values, 5, 1, -0.6)
    both, place = spoiled(first, 0, 0, 0.12)
    assert screen(both).suspect == {5}
    assert screen(both).set_aside == (both[place],)


def test_at_most_two_and_one_a_configuration() -> None:
    values = session(np.random.default_rng(6), 12, 4, 3)
    for candidate in (2, 5, 9):
        values, _ = spoiled(values, candidate, 1, -0.4 - 0.2 * candidate)
    assert {v.configuration for v in screen(values).set_aside} == {5, 9}
    values = session(np.random.default_rng(6), 12, 6, 3)
    for block in (1, 3):
        values, _ = spoiled(values, 2, block, -0.6 - 0.3 * block)
    assert len([v for v in screen(values).set_aside if v.configuration == 2]) <= 1


def test_one_candidate_has_too_few_degrees() -> None:
    values, _ = spoiled(session(np.random.default_rng(6), 1, 4), 0, 2, -0.5)
    assert screen(values).set_aside == ()
    assert not screen(values).suspect


def test_a_block_stays_whose_only_baseline_launch_is_set_aside() -> None:
    values, place = spoiled(session(np.random.default_rng(2), 2, 5), 0, 3, -0.3)
    found = screen(values)
    assert found.set_aside == (values[place],)
    assert 3 in found.fitted.blocks
    differences = reference(values[:place] + values[place + 1 :])[0]
    assert found.fitted.means[1] - found.fitted.means[0] == pytest.approx(differences[1], abs=1e-10)


def test_rounding_errors_are_no_outliers() -> None:
    values = [LaunchValue(b, g, 0.1 * b + 0.3 * g) for b in range(4) for g in range(5)]
    assert screen(values).set_aside == ()


def test_the_threshold_is_one_in_ten_thousand_a_look() -> None:
    """A launch just inside stays, just beyond goes."""
    base = session(np.random.default_rng(9), 6, 4, 2)
    df = fit(base).df
    critical = stats.t.isf(0.00005 / len(base), df - 1)

    def largest(by: float) -> float:
        return float(abs(deleted_residuals(fit(spoiled(base, 3, 2, by)[0]))).max())

    low, high = 0.0, 0.5
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < critical else (low, middle)
    assert not screen(spoiled(base, 3, 2, low - 1e-4)[0]).set_aside
    assert screen(spoiled(base, 3, 2, high + 1e-4)[0]).set_aside
