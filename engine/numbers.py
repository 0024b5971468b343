"""Numbers that may leave `engine/`: finite, or None. What a server, a row or a file says may be anything."""

import math
from collections.abc import Iterable


def finite(value: object) -> float | None:
    """A number as a float; None for text, truth values, NaN, infinities and whole numbers that no float holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def sum_of_all(values: Iterable[float | None]) -> float | None:
    """None as soon as one is, and of none at all: a sum over some of them would be wrong."""
    total, found = 0.0, False
    for value in values:
        if value is None:
            return None
        total, found = total + value, True
    return total if found else None
