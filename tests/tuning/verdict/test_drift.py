from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.tuning.verdict.layouts import design, incomplete, session
from tuning.verdict.drift import drift
from tuning.verdict.layout import fit
from tuning.verdict.records import LaunchValue


def residual_ss(x: np.ndarray, y: np.ndarray) -> tuple[float, int]:
    solution, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    rest = y - x @ solution
    return float(rest @ rest), len(y) - int(rank)


@pytest.mark.parametrize("seed", range(20))
def test_the_test_between_blocks_compares_models_with_and_without_them(seed: int) -> None:
    values = incomplete(np.random.default_rng(seed))
    fitted = fit(values)
    if fitted.df < 1 or len(fitted.blocks) < 2:
        return
    y = np.array([v.value for v in values])
    full, df = residual_ss(design(values), y)
    less, less_df = residual_ss(design(values)[:, : len(fitted.configurations)], y)
    statistic = ((less - full) / (less_df - df)) / (full / df)
    assert drift(fitted, full / df, df).blocks_p == pytest.approx(stats.f.sf(statistic, less_df - df, df), rel=1e-6)


def positioned(values: list[LaunchValue]) -> np.ndarray:
    last = {b: max(v.position or 0 for v in values if v.block == b) for b in {v.block for v in values}}
    return np.array([(v.position or 0) / last[v.block] for v in values])


@pytest.mark.parametrize("seed", range(12))
def test_drift_within_blocks_is_the_slope_of_a_model_with_positions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = session(rng, 5, 4, 2)
    along = positioned(values)
    values = [replace(v, value=v.value + 0.03 * x) for v, x in zip(values, along, strict=True)]
    fitted = fit(values)
    x, y = np.column_stack([design(values), along]), np.array([v.value for v in values])
    slope = np.linalg.lstsq(x, y, rcond=None)[0][-1]
    ss, df = residual_ss(x, y)
    se = (ss / df * np.linalg.inv(x.T @ x)[-1, -1]) ** 0.5
    within = drift(fitted, 1e-4, fitted.df).within
    assert within is not None
    assert within.change == pytest.approx(np.expm1(slope))
    assert within.p == pytest.approx(2 * stats.t.sf(abs(slope / se), df))
    assert within.low == pytest.approx(np.expm1(slope - stats.t.isf(0.025, df) * se))


def test_drift_over_blocks_is_told_from_first_to_last() -> None:
    rng = np.random.default_rng(2)
    steady = session(rng, 12, 4, 3, sd=0.005, drift=0.0)
    drifting = [replace(v, value=v.value + 0.01 * v.block) for v in steady]
    fitted = fit(drifting)
    variance = float(fitted.residuals @ fitted.residuals) / fitted.df
    over = drift(fitted, variance, fitted.df).over
    assert over is not None
    assert over.low < np.expm1(0.03) < over.high
    assert over.p < 1e-6
    still = drift(fit(steady), variance, fitted.df).over
    assert still is not None
    assert still.low < 0 < still.high
    assert drift(fit(drifting), variance, fitted.df).blocks[0] < 0 < drift(fitted, variance, fitted.df).blocks[3]


def test_what_is_not_known_is_not_told() -> None:
    values = session(np.random.default_rng(2), 3, 3, 2)
    without = [replace(v, position=None) for v in values]
    assert drift(fit(without), 1e-4, 8).within is None
    assert drift(fit(values), None, 0).over is None
    one = drift(fit([v for v in values if v.block == 1]), 1e-4, 1)
    assert one.over is None
    assert one.blocks == {1: pytest.approx(0, abs=1e-12)}
