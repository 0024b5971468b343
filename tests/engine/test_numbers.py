"""Only finite numbers leave engine/."""

import math

import pytest

from engine.numbers import finite, sum_of_all


@pytest.mark.parametrize(("given", "told"), [(3, 3.0), (0.5, 0.5), (0, 0.0), (-2.5, -2.5), (10**300, 1e300)])
def test_a_number_is_a_float(given: object, told: float) -> None:
    assert finite(given) == told
    assert isinstance(finite(given), float)


@pytest.mark.parametrize("given", [None, "3", True, False, math.nan, math.inf, -math.inf, 10**400, [1], {"a": 1}])
def test_anything_else_is_none(given: object) -> None:
    assert finite(given) is None


def test_a_sum_is_of_all_or_none() -> None:
    assert sum_of_all([1.0, 2.5]) == 3.5
    assert sum_of_all([0.0]) == 0.0
    assert sum_of_all([1.0, None]) is None
    assert sum_of_all([]) is None
