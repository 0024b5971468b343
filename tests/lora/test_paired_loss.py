"""Losses of base and adapter on the same records: the textbook, and how often the interval holds the truth."""

import math
import random

import pytest

from lora.evaluations.paired_loss import RecordLoss, paired, perplexity
from lora.records import LoraError
from tuning.statistics import t_interval


def test_losses_are_means_over_tokens_and_the_difference_is_theirs() -> None:
    found = paired([RecordLoss(0, 10, 20.0, 10.0), RecordLoss(1, 30, 90.0, 60.0)])
    assert (found.records, found.tokens) == (2, 40)
    assert (found.base, found.adapter, found.difference) == (2.75, 1.75, -1.0)
    assert found.improved == 2
    assert found.direction == "better"  # each record by exactly one nat a token: no spread
    assert (found.low, found.high) == (-1.0, -1.0)


def test_of_records_of_one_length_it_is_the_paired_t_interval() -> None:
    gains = [0.5, -0.1, 0.9, 0.3, 0.2]
    found = paired([RecordLoss(i, 8, 24.0, 24.0 - 8 * gain) for i, gain in enumerate(gains)])
    plain = t_interval([-gain for gain in gains])
    assert found.difference == pytest.approx(plain.mean)
    assert (found.low, found.high) == (pytest.approx(plain.low), pytest.approx(plain.high))
    assert found.direction == "undecided"
    assert found.improved == 4


def test_worse_is_said_and_one_record_says_nothing() -> None:
    worse = paired([RecordLoss(i, 5, 10.0, 12.0 + i / 10) for i in range(6)])
    assert worse.direction == "worse"
    single = paired([RecordLoss(0, 5, 10.0, 1.0)])
    assert (single.low, single.high, single.direction) == (None, None, "undecided")
    with pytest.raises(LoraError, match="no record has an answer"):
        paired([])


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Records of very unlike lengths, long ones gaining less: the mean of records would be off, the ratio is not."""
    draw, held, plays = random.Random(7), 0, 600
    for _ in range(plays):
        losses = []
        for index in range(60):
            tokens = draw.choice((5, 10, 20, 80))
            gain = 0.8 - 0.004 * tokens + draw.gauss(0, 0.4)
            losses.append(RecordLoss(index, tokens, 2.0 * tokens, (2.0 - gain) * tokens))
        truth = -sum(n * (0.8 - 0.004 * n) for n in (5, 10, 20, 80)) / sum((5, 10, 20, 80))
        found = paired(losses)
        held += found.low is not None and found.high is not None and found.low <= truth <= found.high
    assert 0.92 <= held / plays <= 0.98


def test_perplexity_is_e_to_the_loss_and_none_where_that_is_no_number() -> None:
    assert perplexity(math.log(8)) == pytest.approx(8)
    assert perplexity(1e9) is None
