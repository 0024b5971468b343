"""Losses of an adapter and its base on the same records, and how far the difference can be trusted.

The loss is the mean of -log p over all answer tokens, as a training reports it, and a record is what is sampled: the
difference is a ratio of two sums over records, D = Σ(aᵢ - bᵢ) / Σnᵢ. Its interval is that of the mean of
D + (aᵢ - bᵢ - D·nᵢ) / n̄ (linearised: W. G. Cochran, Sampling Techniques, 3rd ed. 1977, section 6.4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lora.records import LoraError
from tuning.statistics import t_interval

Direction = Literal["better", "worse", "undecided"]


@dataclass(frozen=True, slots=True)
class RecordLoss:
    """`base` and `adapter` are sums of -log p over the `tokens` of a record's answers, in nats."""

    index: int
    tokens: int
    base: float
    adapter: float


@dataclass(frozen=True, slots=True)
class Paired:
    """`difference` is the adapter's loss less the base's, in nats a token; below 0 it is better. `low` and `high` are
    None of a single record. `improved` counts the records that the adapter answers better."""

    records: int
    tokens: int
    base: float
    adapter: float
    difference: float
    low: float | None
    high: float | None
    improved: int

    @property
    def direction(self) -> Direction:
        return direction_of(self.low, self.high)


def direction_of(low: float | None, high: float | None) -> Direction:
    """What an interval of the difference says."""
    if high is not None and high < 0:
        return "better"
    return "worse" if low is not None and low > 0 else "undecided"


def paired(losses: Sequence[RecordLoss], confidence: float = 0.95) -> Paired:
    """Both losses and their difference with its interval. Raises LoraError where there is nothing to compare."""
    tokens = sum(each.tokens for each in losses)
    if not tokens:
        raise LoraError("no record has an answer that can be compared: are all of them longer than the limit?")
    base, adapter = (math.fsum(values) / tokens for values in zip(*((e.base, e.adapter) for e in losses), strict=True))
    difference = math.fsum(each.adapter - each.base for each in losses) / tokens
    mean_tokens = tokens / len(losses)
    interval = t_interval(
        [difference + (each.adapter - each.base - difference * each.tokens) / mean_tokens for each in losses],
        confidence,
    )
    improved = sum(each.adapter < each.base for each in losses)
    return Paired(len(losses), tokens, base, adapter, difference, interval.low, interval.high, improved)


def perplexity(loss: float) -> float | None:
    """e to the loss; None where that is no number any more."""
    try:
        return math.exp(loss)
    except OverflowError:
        return None
