import math

import pytest

from engine.records import Histogram
from engine.scrape.histograms import Percentile, between, mean, percentile
from engine.scrape.metrics import parse_metrics
from tests.engine.observed import H200

INF = math.inf


def histogram(*counts: float, total: float = 0.0, bounds: tuple[float, ...] = (0.01, 0.02, 0.04, INF)) -> Histogram:
    return Histogram(tuple(zip(bounds, counts, strict=True)), total, counts[-1])


@pytest.mark.parametrize(
    ("perc", "expected"),
    [
        (50, Percentile(0.015, True, 0.01, 0.02)),  # rank 5 of 10: halfway through the 2 to 8 of the second bucket
        (20, Percentile(None, False, upper=0.01)),  # rank 2: within the first bucket
        (80, Percentile(0.02, True, 0.01, 0.02)),
        (85, Percentile(0.03, True, 0.02, 0.04)),
        (95, Percentile(None, False, lower=0.04)),
        (100, Percentile(None, False, lower=0.04)),
    ],
)
def test_percentiles_within_below_and_above_the_buckets(perc: float, expected: Percentile) -> None:
    found = percentile(histogram(2, 8, 9, 10), perc)
    assert found is not None
    assert found.value == pytest.approx(expected.value)
    assert (found.resolved, found.lower, found.upper) == (expected.resolved, expected.lower, expected.upper)


def test_nothing_has_no_percentile_and_no_mean() -> None:
    for empty in (None, histogram(0, 0, 0, 0), Histogram((), 0.0, 0.0)):
        assert percentile(empty, 50) is None
        assert mean(empty) is None


def test_empty_buckets_are_passed_over() -> None:
    found = percentile(histogram(0, 0, 4, 4), 50)
    assert found is not None
    assert (found.value, found.lower, found.upper) == (pytest.approx(0.03), 0.02, 0.04)


def test_the_window_is_what_came_in_between() -> None:
    assert between(histogram(1, 2, 3, 4, total=1.0), histogram(1, 5, 7, 8, total=1.5)) == histogram(
        0, 3, 4, 4, total=0.5
    )
    assert between(None, histogram(1, 2, 3, 4)) == histogram(1, 2, 3, 4)
    assert between(histogram(1, 2, 3, 4), None) is None


def test_a_restart_or_other_buckets_give_no_between() -> None:
    assert between(histogram(5, 6, 7, 8), histogram(0, 0, 1, 9)) is None
    assert between(histogram(1, 2, 3, 4), histogram(1, 2, 3, 5, bounds=(0.1, 0.2, 0.4, INF))) is None


def test_absurd_bounds_and_counts_give_no_number_that_is_none() -> None:
    wide = Histogram(((-1e308, 1.0), (1e308, 3.0), (INF, 3.0)), 1e308, 3.0)
    for perc in range(0, 101, 10):
        found = percentile(wide, perc)
        assert found is not None
        assert found.value is None or math.isfinite(found.value)
    huge = Histogram(((0.1, 1e308), (INF, 1e308)), 1e308, 1e308)
    assert between(Histogram(((0.1, -1e308), (INF, -1e308)), 0.0, -1e308), huge) is None
    assert between(Histogram(((0.1, 0.0), (INF, 0.0)), -1e308, 0.0), huge) is None


def test_a_real_window_between_two_scrapes() -> None:
    early, late = (
        parse_metrics((H200 / f"metrics/kv-starved-load-{at}.txt").read_text(), "", 0.0).histograms
        for at in ("09", "12")
    )
    added = between(early["e2el"], late["e2el"])
    assert added is not None
    assert added.count == 4.0
    assert mean(added) == pytest.approx((232.0045485496521 - 189.42946457862854) / 4)
    itl = percentile(between(early["itl"], late["itl"]), 50)
    assert itl is not None
    assert itl.resolved
    assert (itl.lower, itl.upper) == (0.01, 0.025)


def test_a_fast_server_s_token_latency_is_below_what_the_buckets_resolve() -> None:
    found = parse_metrics((H200 / "metrics/idle-after-load.txt").read_text(), "", 0.0).histograms
    assert percentile(found["itl"], 50) == Percentile(None, False, upper=0.01)
    assert mean(found["itl"]) == pytest.approx(448.8007012649997 / 84328)  # the mean is exact all the same
    assert percentile(found["queue"], 99) == Percentile(None, False, upper=0.3)
