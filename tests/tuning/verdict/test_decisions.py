import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tuning.verdict.decisions import decide, interval, margin, more_blocks, worthwhile
from tuning.verdict.moderation import Comparison
from tuning.verdict.records import Rules

RULES = Rules(6, 4)
BAR = 2.7


def cases(seed: int, number: int = 300) -> list[Comparison]:
    rng = np.random.default_rng(seed)
    return [
        Comparison(float(rng.normal(0, 0.02)), float(0.02 * rng.random() ** 2 + 1e-4), float(1 + 40 * rng.random()))
        for _ in range(number)
    ]


@pytest.mark.parametrize(
    ("difference", "se", "state"),
    [
        (0.05, 0.005, "better"),
        (-0.05, 0.005, "worse"),
        (0.0, 0.002, "equivalent"),
        (0.015, 0.02, "undecided"),
        (-0.01, 0.015, "implausible"),
    ],
)
def test_each_state(difference: float, se: float, state: str) -> None:
    assert decide(Comparison(difference, se, 30), BAR, RULES)[0] == state


def test_a_sure_difference_inside_the_margin_is_equivalent() -> None:
    """+1 % [0.5, 1.5] is equivalent, and better, too."""
    assert decide(Comparison(0.01, 0.0015, 40), BAR, RULES) == ("equivalent", "better")
    assert decide(Comparison(-0.01, 0.0015, 40), BAR, RULES) == ("equivalent", "worse")
    assert decide(Comparison(0.001, 0.0015, 40), BAR, RULES) == ("equivalent", None)


@pytest.mark.parametrize("larger", [True, False])
def test_the_interval_agrees_with_what_is_said(larger: bool) -> None:
    rules = replace(RULES, larger_is_better=larger)
    seen = set()
    for found in cases(1):
        state, also = decide(found, BAR, rules)
        seen.add(state)
        shown = interval(found, BAR)
        assert shown.low is not None
        assert shown.high is not None
        assert shown.effect is not None
        assert shown.low < shown.effect < shown.high
        up, down = shown.low > 0, shown.high < 0
        better, worse = (up, down) if larger else (down, up)
        assert better == ("better" in (state, also))
        assert worse == ("worse" in (state, also))
        inside = shown.high < rules.margin and shown.low > math.expm1(-margin(rules))
        assert inside == (state == "equivalent")
        if state == "equivalent":
            assert -rules.margin < shown.low < shown.high < rules.margin
    assert seen == {"better", "worse", "equivalent", "implausible", "undecided"}


def test_smaller_is_better_is_the_mirror() -> None:
    """But for the worthwhile gain, which is a share of 1 each way."""
    turned = {"better": "worse", "worse": "better"}
    rules = replace(RULES, decide_all=True)
    for found in cases(2):
        state, also = decide(found, BAR, rules)
        mirrored = decide(found, BAR, replace(rules, larger_is_better=False))
        assert mirrored == (turned.get(state, state), turned.get(also or "", also))


def test_two_percent_means_two_percent() -> None:
    assert margin(RULES) == pytest.approx(math.log(1.02))
    assert worthwhile(RULES) == pytest.approx(math.log(1.02))
    assert worthwhile(replace(RULES, larger_is_better=False)) == pytest.approx(-math.log(0.98))


def test_a_candidate_leaves_when_a_worthwhile_gain_is_implausible() -> None:
    df, se = 12.0, 0.01
    edge = worthwhile(RULES) - stats.t.isf(stats.norm.sf(1.645), df) * se
    assert decide(Comparison(edge - 1e-6, se, df), BAR, RULES)[0] == "implausible"
    assert decide(Comparison(edge + 1e-6, se, df), BAR, RULES)[0] == "undecided"
    assert decide(Comparison(edge - 1e-6, se, df), BAR, replace(RULES, decide_all=True))[0] == "undecided"


def test_without_noise_what_differs_differs() -> None:
    assert decide(Comparison(0.03, 0.0, 3), BAR, RULES)[0] == "better"
    assert decide(Comparison(-0.03, 0.0, 3), BAR, RULES)[0] == "worse"
    assert decide(Comparison(0.0, 0.0, 3), BAR, RULES) == ("equivalent", None)
    shown = interval(Comparison(0.03, 0.0, 3), BAR)
    assert shown.low == shown.high == pytest.approx(math.expm1(0.03))


def test_the_interval_by_scipys_quantiles() -> None:
    found = Comparison(0.01, 0.004, 8.7)
    half = stats.t.isf(stats.norm.sf(BAR), 8.7) * 0.004
    shown = interval(found, BAR)
    assert shown.low == pytest.approx(math.exp(0.01 - half) - 1)
    assert shown.high == pytest.approx(math.exp(0.01 + half) - 1)


def test_more_blocks_is_the_smallest_number_that_is_enough() -> None:
    later = (2.5, 2.3, 2.1, 2.0)

    def enough(found: Comparison, n: int, bar: float) -> bool:
        se = found.se * math.sqrt(2 / n)
        half = stats.t.isf(stats.norm.sf(bar), found.df * n / 2) * se
        d = abs(found.difference)
        return d - half > 0.84 * se or math.log(1.02) - d - half > 0.84 * se

    answers = set()
    for found in cases(3):
        expected = next((more for more, bar in enumerate(later, 1) if enough(found, 2 + more, bar)), None)
        answers.add(expected)
        assert more_blocks(found, 2, later, RULES) == expected
    assert answers == {None, 1, 2, 3, 4}
    assert more_blocks(Comparison(0.5, 0.001, 10), 4, (), RULES) is None
