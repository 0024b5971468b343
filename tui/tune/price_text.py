"""The price of certainty as lines: a number of blocks each, what it finds, what it costs. Pure; no widgets here."""

import math
from collections.abc import Mapping

from tui.format import ABSENT
from tui.metric_text import money
from tuning.figures import duration_text
from tuning.verdict.outlook import Price

PENDING = "…"
_WIDTHS = (10, 10, 14, 26)


def price_line(blocks: int, price: Price | None, smallest_effect: float, chosen: bool) -> str:
    """`● 4       ✓ 1.9 %   37, ≤ 60      61 min, ≤ 1 h 40 min      $2.03, ≤ $3.33`: what is to be expected if nothing
    differs, and what it comes to at most. ✓ where an effect as small as the one worth having is found."""
    mark = f"{'●' if chosen else '○'} {blocks}"
    if price is None:
        return _columns(mark, PENDING)
    return _columns(
        mark,
        found_text(price, smallest_effect),
        _both(f"{math.ceil(price.launches_expected - 0.5)}", f"{price.launches_at_most}"),
        _both(duration_text(3600 * price.hours_expected), duration_text(3600 * price.hours_at_most)),
        _both(money(price.money_expected), money(price.money_at_most)),
    )


def found_text(price: Price, smallest_effect: float) -> str:
    """The smallest effect that is found in 80 % of sessions."""
    effect = price.smallest_effect
    if effect is None or not math.isfinite(effect):
        return f"  {ABSENT}"
    percent = 100 * effect
    digits = f"{percent:.1f}" if percent < 9.95 else f"{percent:.0f}"
    return f"{'✓' if effect <= smallest_effect else ' '} {digits} %"


def price_lines(
    prices: Mapping[int, Price | None], smallest_effect: float, chosen: int | None
) -> tuple[tuple[int, str], ...]:
    """(blocks, line) for each number of blocks."""
    return tuple(
        (blocks, price_line(blocks, price, smallest_effect, blocks == chosen)) for blocks, price in prices.items()
    )


def _both(expected: str, most: str) -> str:
    return expected if expected == most or not most else f"{expected}, ≤ {most}"


def _columns(*cells: str) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False)]
    return "".join([*padded, *cells[len(_WIDTHS) :]]).rstrip()


HEADS = _columns("  blocks", "  finds", "launches", "time", "money")
