from dataclasses import replace

import pytest

from engine.records import Histogram, ServerSample
from engine.samples.rates import Rates, prefix_hit_perc, restarted
from engine.scrape.metrics import parse_metrics
from tests.engine.observed import H200

BEFORE = ServerSample(
    at="",
    clock=100.0,
    preemptions=3.0,
    prompt_tokens=1000.0,
    generation_tokens=500.0,
    prefix_queries=1000.0,
    prefix_hits=100.0,
    requests_finished={"stop": 1.0, "length": 4.0},
    process_start=1.0e9,
)
AFTER = replace(
    BEFORE,
    clock=102.0,
    preemptions=5.0,
    prompt_tokens=1400.0,
    generation_tokens=1500.0,
    prefix_queries=1400.0,
    prefix_hits=200.0,
    requests_finished={"stop": 2.0, "length": 6.0, "abort": 1.0},
)


def test_rates_are_increases_per_second_of_the_clock() -> None:
    assert Rates.between(BEFORE, AFTER) == Rates(
        seconds=2.0,
        prompt_tok_per_s=200.0,
        generation_tok_per_s=500.0,
        requests_per_s=2.0,
        preemptions=2.0,
        prefix_hit_perc=25.0,
    )


def test_an_idle_window_has_zero_rates_and_no_share_of_hits() -> None:
    idle = Rates.between(AFTER, replace(AFTER, clock=103.0))
    assert (idle.generation_tok_per_s, idle.preemptions, idle.prefix_hit_perc) == (0.0, 0.0, None)


@pytest.mark.parametrize(
    "fresh",
    [
        {"generation_tokens": 10.0},
        {"prompt_tokens": 10.0},
        {"preemptions": 0.0},
        {"prefix_hits": 0.0},
        {"prefix_queries": 0.0},
        {"requests_finished": {"stop": 1.0}},
        {"process_start": 1.1e9},
    ],
)
def test_a_restart_is_flagged_and_gives_no_figures(fresh: dict[str, object]) -> None:
    assert Rates.between(BEFORE, replace(AFTER, **fresh)) == Rates(2.0, restarted=True)  # type: ignore[arg-type]


def test_absent_counters_have_no_rate_and_are_no_restart() -> None:
    blank = ServerSample(at="", clock=102.0)
    assert Rates.between(BEFORE, blank) == Rates(2.0)
    assert Rates.between(blank, replace(AFTER, clock=104.0)) == Rates(2.0)
    assert Rates.between(BEFORE, replace(AFTER, process_start=None)).generation_tok_per_s == 500.0


def test_totals_that_only_a_histogram_or_a_further_counter_has_tell_a_restart_too() -> None:
    seen = {"ttft": Histogram(((0.1, 5.0),), 1.0, 5.0)}
    before = replace(BEFORE, process_start=None, histograms=seen, counters={"spec_drafts": 5.0})
    after = replace(AFTER, process_start=None, histograms=seen, counters={"spec_drafts": 5.0})
    assert not restarted(before, after)
    assert restarted(before, replace(after, counters={"spec_drafts": 4.0}))
    assert restarted(before, replace(after, histograms={"ttft": Histogram(((0.1, 4.0),), 1.0, 4.0)}))
    assert not restarted(before, replace(after, histograms={}, counters={}))


def test_absurd_totals_have_no_rate_rather_than_an_infinite_one() -> None:
    absurd = replace(AFTER, generation_tokens=1e308, prompt_tokens=1e308, prefix_hits=1e308, prefix_queries=1e308)
    assert Rates.between(replace(BEFORE, generation_tokens=-1e308, clock=101.9), absurd).generation_tok_per_s is None
    assert Rates.between(replace(BEFORE, clock=101.9), absurd).prompt_tok_per_s is None
    assert prefix_hit_perc(absurd) is None


def test_no_time_gives_no_rate() -> None:
    assert Rates.between(BEFORE, replace(AFTER, clock=100.0)) == Rates(0.0)


def test_rates_of_a_real_server() -> None:
    early, late = (
        parse_metrics((H200 / f"metrics/kv-starved-load-{at}.txt").read_text(), "", float(at)) for at in ("03", "06")
    )
    found = Rates.between(early, late)
    assert found.generation_tok_per_s == (10055 - 3803) / 3
    assert (found.preemptions, found.prompt_tok_per_s, found.requests_per_s) == (5.0, 0.0, 0.0)


def test_the_share_of_hits_since_the_start() -> None:
    assert prefix_hit_perc(BEFORE) == 10.0
    assert prefix_hit_perc(replace(BEFORE, prefix_queries=0.0)) is None
    assert prefix_hit_perc(replace(BEFORE, prefix_hits=None)) is None
