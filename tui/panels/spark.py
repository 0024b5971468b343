"""A history in block characters, one column a slot of time. A slot without a sample is empty: a gap stays a gap."""

import math
from collections.abc import Sequence

LEVELS = " ▁▂▃▄▅▆▇█"


def blocks(values: Sequence[float | None], height: int = 1, top: float | None = None) -> list[str]:
    """`height` lines, the upper first, of one column for each value, from 0 to `top` (the largest value without one).

    Even 0 leaves its lowest eighth, so that "nothing happened" differs from "nothing was read".
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    full = top if top is not None else max(known, default=0.0)
    columns = [_column(value, height, full) for value in values]
    return ["".join(column[row] for column in columns) for row in range(height)]


def _column(value: float | None, height: int, full: float) -> str:
    """One column, its upper character first."""
    if value is None or not math.isfinite(value):
        return " " * height
    share = min(1.0, max(0.0, value / full)) if full > 0 else 0.0
    eighths = max(1, round(share * 8 * height))
    return "".join(LEVELS[min(8, max(0, eighths - 8 * row))] for row in reversed(range(height)))


def bar(value: float | None, full: float | None, width: int) -> str:
    """A horizontal bar of `width` cells; empty where either end is unknown."""
    if value is None or full is None or not math.isfinite(value) or full <= 0:
        return "░" * width
    filled = round(min(1.0, max(0.0, value / full)) * width)
    return "█" * filled + "░" * (width - filled)
