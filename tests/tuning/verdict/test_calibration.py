import numpy as np
import pytest

from tuning.verdict.calibration import components, launch_value_sd, prior_of
from tuning.verdict.records import Noise, Prior


def test_a_priors_noise_is_that_of_the_look() -> None:
    assert prior_of(Noise(0.01, 5)) == Prior(0.01, 5)
    assert prior_of(Noise(None, 0)) is None
    assert prior_of(Noise(0.0, 5)) is None


def test_run_and_launch_noise_are_told_apart() -> None:
    rng = np.random.default_rng(1)
    runs = [list(9 + 0.02 * rng.standard_normal() + 0.009 * rng.standard_normal(3)) for _ in range(2000)]
    sd = float(np.std([np.mean(run) for run in runs], ddof=1))
    found = components(runs, Noise(sd, 1999))
    assert found.run_sd == pytest.approx(0.009, rel=0.05)
    assert found.launch_sd == pytest.approx(0.02, rel=0.05)


def test_launch_noise_is_not_below_none() -> None:
    assert components([[1.0, 1.1], [1.0, 1.1]], Noise(0.001, 3)).launch_sd == 0
    assert components([[1.0], [1.1]], Noise(0.05, 3)).run_sd is None
    assert components([], Noise(None, 0)).launch_sd is None


def test_the_noise_of_a_launch_over_its_runs() -> None:
    assert launch_value_sd(0.01, 0.009, 3) == pytest.approx((0.0001 + 0.000027) ** 0.5)
