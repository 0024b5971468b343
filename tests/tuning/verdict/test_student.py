import math

import pytest
from scipy import stats

from tuning.verdict.student import ratio, t_of_p, t_of_z, z_of_t


@pytest.mark.parametrize("df", [1, 2.5, 3, 8.7, 14.77, 44, 1000])
@pytest.mark.parametrize("t", [-30.0, -4.2, -0.3, 0.0, 0.7, 2.2, 6.0, 12.0, 25.0])
def test_t_and_z_are_equally_improbable(t: float, df: float) -> None:
    z = z_of_t(t, df)
    assert stats.norm.sf(abs(z)) == pytest.approx(stats.t.sf(abs(t), df), rel=1e-8)
    assert math.copysign(1, z) == math.copysign(1, t) or t == 0
    assert t_of_z(z, df) == pytest.approx(t, rel=1e-6)


def test_the_far_tail_keeps_its_order() -> None:
    assert z_of_t(20, 30) < z_of_t(25, 30) < z_of_t(60, 30)
    assert z_of_t(math.inf, 30) == math.inf
    assert z_of_t(-math.inf, 30) == -math.inf


def test_many_degrees_are_normal() -> None:
    assert z_of_t(2.5, 1e7) == pytest.approx(2.5, abs=1e-5)


def test_the_upper_point_of_t() -> None:
    assert t_of_p(0.025, 3) == pytest.approx(3.182446, abs=1e-6)


def test_logs_become_ratios() -> None:
    assert ratio(math.log(1.05)) == pytest.approx(0.05)
    assert ratio(-math.log(1.05)) == pytest.approx(1 / 1.05 - 1)
    assert ratio(1e-14) == pytest.approx(1e-14, rel=1e-9)
    assert ratio(1e6) is None
