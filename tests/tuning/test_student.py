import subprocess
import sys

import pytest
from scipy.special import stdtrit

from tuning.student import t_quantile


def test_quantiles_are_those_of_the_table() -> None:
    """Two-sided 95 % points of Student's t, as printed in every table."""
    for df, point in ((1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (1e6, 1.960)):
        assert t_quantile(0.975, df) == pytest.approx(point, abs=5e-4)
    assert t_quantile(0.025, 3) == pytest.approx(-t_quantile(0.975, 3))
    assert t_quantile(0.5, 3) == 0.0


@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.3, 0.51, 0.75, 0.9, 0.975, 0.995, 0.9995, 1 - 1e-9])
def test_quantiles_are_those_of_scipy(probability: float) -> None:
    for df in (0.5, 1, 1.5, 2, 3, 4.7, 8, 15, 30, 99, 500, 1e4, 1e6):
        assert t_quantile(probability, df) == pytest.approx(float(stdtrit(df, probability)), rel=1e-8), df


@pytest.mark.parametrize(("probability", "df"), [(0.0, 3), (1.0, 3), (0.9, 0), (float("nan"), 3), (0.9, float("nan"))])
def test_what_has_no_quantile_is_refused(probability: float, df: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(probability, df)


def test_a_report_is_made_without_the_large_libraries() -> None:
    code = "import sys, tuning.results, tuning.student as s; s.t_quantile(0.975, 4); print('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
