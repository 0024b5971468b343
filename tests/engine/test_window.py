"""Figures of a window: what was added in it, over restarts, gaps and looks that got no answer."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from engine.records import GpuReading, Histogram
from engine.samples.sample_record import corners_json, to_record
from engine.samples.window import Window, started_anew
from engine.scrape.histograms import percentile
from engine.scrape.metrics import parse_metrics
from store.records import SampleRecord
from tests.engine.observed import H200

NO_GPU = GpuReading(at="", clock=0.0)
MINUTE = 60.0


def moment(second: float) -> str:
    whole = int(second)
    return f"2026-11-30T10:{whole // 60:02}:{whole % 60:02}.{round(1000 * (second - whole)):03}Z"


def look(second: float, tokens: float | None = None, **raw: Any) -> SampleRecord:
    return SampleRecord(moment(second), generation_tokens=tokens, raw=raw)


def ttft(*counts: float) -> Mapping[str, Any]:
    """Values under 0.1, 0.2 and 0.4 s, and above."""
    histogram = Histogram(tuple(zip((0.1, 0.2, 0.4, math.inf), counts, strict=True)), 0.0, counts[-1])
    return {"ttft": corners_json(histogram)}


def tokens_of(sample: SampleRecord) -> float | None:
    return sample.generation_tokens


def test_an_empty_window_and_one_look_have_no_figures() -> None:
    for window in (Window(MINUTE), Window(MINUTE, [look(0, 5.0, histograms=ttft(1, 2, 3, 4))])):
        assert (window.seen(), window.increase(tokens_of), window.rate(tokens_of)) == (0.0, None, None)
        assert (window.rate(tokens_of, 1.0), window.histogram("ttft"), window.total("counters")) == (None, None, None)
    assert Window(MINUTE).newest is None
    assert Window(MINUTE).points(tokens_of) == ()


def test_growth_is_that_of_the_window_and_not_of_the_server_s_life() -> None:
    window = Window(10, [look(second, 1000.0 + 5 * second) for second in range(60)])
    assert len(window) == 11  # ten seconds, and the look from which the first difference is taken
    assert (window.increase(tokens_of), window.rate(tokens_of), window.seen()) == (50.0, 5.0, 10.0)
    assert window.points(tokens_of)[0] == (window.points(tokens_of)[-1][0] - 10, 1245.0)


def test_the_rate_of_the_last_second_needs_only_the_looks_around_it() -> None:
    window = Window(MINUTE, [look(0, 0.0), look(1, 10.0), look(1.98, 30.0), look(3.01, 70.0)])
    assert window.rate(tokens_of, 1.0) == pytest.approx(40 / 1.03)
    assert window.rate(tokens_of, 2.0) == pytest.approx(60 / 2.01)
    assert window.rate(tokens_of, 100.0) == pytest.approx(70 / 3.01)


def test_looks_without_an_answer_are_bridged_and_a_silent_server_has_no_rate() -> None:
    window = Window(MINUTE, [look(0, 0.0), look(1, 10.0), look(2, error="x"), look(3, error="x")])
    assert window.rate(tokens_of, 1.0) is None
    assert window.increase(tokens_of) == 10.0
    window.add(look(4, 40.0))
    assert window.rate(tokens_of, 1.0) == 10.0  # 30 tokens in the three seconds since the last answer
    assert window.increase(tokens_of) == 40.0


def test_an_absent_series_is_none_and_never_zero() -> None:
    window = Window(MINUTE, [look(0, 5.0), look(1, 6.0)])
    assert window.increase(lambda sample: sample.preemptions) is None
    assert window.total("counters", "spec_drafts") is None
    assert window.histogram("ttft") is None
    assert window.points(lambda sample: sample.kv_perc)[0][1] is None


def test_a_series_that_comes_later_counts_from_its_first_look() -> None:
    window = Window(MINUTE, [look(0, 5.0), look(1, 6.0, counters={"spec_drafts": 7.0})])
    assert window.total("counters", "spec_drafts") is None
    window.add(look(2, 7.0, counters={"spec_drafts": 9.0}))
    assert window.total("counters", "spec_drafts") == 2.0


@pytest.mark.parametrize("second", [0.0, 4.0, 5.0])
def test_a_look_that_is_not_newer_is_dropped(second: float) -> None:
    window = Window(MINUTE, [look(3, 0.0), look(5, 10.0)])
    window.add(look(second, 1e9))
    assert (len(window), window.increase(tokens_of)) == (2, 10.0)


def test_after_a_gap_figures_are_those_since_the_last_look() -> None:
    window = Window(10, [look(second, float(second)) for second in range(5)])
    window.add(look(304, 604.0))
    assert (len(window), window.increase(tokens_of), window.seen()) == (2, 600.0, 300.0)
    window.add(look(305, 605.0))
    window.add(look(314, 614.0))
    assert (window.increase(tokens_of), window.seen()) == (10.0, 10.0)


def test_a_restart_counts_from_zero() -> None:
    window = Window(MINUTE, [look(0, 100.0), look(1, 110.0), look(2, 4.0), look(3, 9.0)])
    assert window.increase(tokens_of) == 19.0
    assert window.rate(tokens_of, 1.0) == 5.0


def test_a_restart_that_no_fall_of_the_counter_shows_is_told_by_its_start() -> None:
    before = [look(0, 100.0, process_start=1.0), look(1, 110.0, process_start=1.0)]
    window = Window(MINUTE, [*before, look(9, 150.0, process_start=2.0), look(10, 151.0, process_start=2.0)])
    assert window.increase(tokens_of) == 10.0 + 150.0 + 1.0


def test_what_is_of_this_life_ends_at_a_restart_and_at_the_time_asked_for() -> None:
    window = Window(60)
    assert window.of_this_life(60) == []
    for second in range(5):
        window.add(look(second, 100.0 + second, counters={"spec_drafts": 50.0}))
    begun = window.of_this_life(60)[0][0]
    assert [at - begun for at, _ in window.of_this_life(60)] == [0, 1, 2, 3, 4]
    assert len(window.of_this_life(2)) == 3
    window.add(look(5, error="no answer"))
    window.add(look(6, 200.0, counters={"spec_drafts": 1.0}))  # this counter alone shows that it began anew
    window.add(look(7, 201.0, counters={"spec_drafts": 2.0}))
    assert [sample.at for _, sample in window.of_this_life(60)] == [moment(6), moment(7)]


def test_a_gpu_s_energy_is_not_begun_anew_by_a_server() -> None:
    def energy(sample: SampleRecord) -> float | None:
        return sample.gpu_energy_j

    looks = [replace(look(second, 100.0 - second), gpu_energy_j=5e6 + 300 * second) for second in range(3)]
    window = Window(MINUTE, looks)
    assert window.difference(energy) == 600.0
    assert window.difference(lambda sample: sample.kv_perc) is None
    assert Window(MINUTE, looks[:1]).difference(energy) is None
    window.add(replace(look(3), gpu_energy_j=1.0))  # the driver was loaded anew
    assert window.difference(energy) is None


def test_percentiles_over_a_restart_count_only_what_came_since() -> None:
    old, new = {"process_start": 1.0}, {"process_start": 2.0}
    window = Window(
        MINUTE,
        [
            look(0, 0.0, histograms=ttft(0, 0, 0, 50), **old),
            look(1, 9.0, histograms=ttft(0, 0, 0, 90), **old),
            look(2, error="Nothing answers."),
            look(3, 1.0, histograms=ttft(0, 8, 8, 8), **new),
            look(4, 2.0, histograms=ttft(0, 10, 10, 10), **new),
        ],
    )
    found = window.histogram("ttft")
    assert found is not None
    assert found.count == 10.0
    median = percentile(found, 50)
    assert median is not None
    assert median.value == pytest.approx(0.15)
    # Once the restart has left the window, figures are differences again.
    for second in range(5, 70):
        window.add(look(second, 3.0, histograms=ttft(0, 10, 10 + second, 10 + second), **new))
    later = window.histogram("ttft")
    assert later is not None
    assert later.count == 60.0


@pytest.mark.parametrize(
    "after",
    [
        SampleRecord("", preemptions=0.0),
        SampleRecord("", prompt_tokens=1.0),
        SampleRecord("", prefix_queries=1.0),
        SampleRecord("", raw={"requests_finished": {"stop": 1.0, "length": 1.0}}),
        SampleRecord("", raw={"counters": {"spec_drafts": 1.0}}),
        SampleRecord("", raw={"histograms": ttft(0, 0, 0, 1)}),
        SampleRecord("", raw={"process_start": 6.0}),
    ],
    ids=["preemptions", "prompt", "prefix", "finished", "counter", "histogram", "start"],
)
def test_any_total_that_fell_is_a_new_start(after: SampleRecord) -> None:
    before = SampleRecord(
        "",
        preemptions=2.0,
        prompt_tokens=2.0,
        generation_tokens=2.0,
        prefix_queries=2.0,
        raw={
            "requests_finished": {"stop": 3.0},
            "counters": {"spec_drafts": 2.0},
            "histograms": ttft(0, 0, 0, 2),
            "process_start": 5.0,
        },
    )
    assert started_anew(before, after)
    assert not started_anew(before, before)
    assert not started_anew(after, SampleRecord("", generation_tokens=0.0))


def test_buckets_that_fell_alone_are_a_new_start_too() -> None:
    window = Window(MINUTE, [look(0, 1.0, histograms=ttft(5, 5, 5, 5)), look(1, 1.0, histograms=ttft(0, 6, 6, 6))])
    found = window.histogram("ttft")
    assert found is not None
    assert found.count == 6.0


def test_nothing_new_is_a_count_of_zero_and_no_percentile() -> None:
    window = Window(MINUTE, [look(second, 1.0, histograms=ttft(5, 5, 5, 5)) for second in (0, 1)])
    found = window.histogram("ttft")
    assert found is not None
    assert found.count == 0.0
    assert percentile(found, 50) is None


def test_absurd_numbers_have_no_growth_rather_than_an_infinite_one() -> None:
    window = Window(MINUTE, [look(0, -1e308), look(0.5, 1e308)])
    assert (window.increase(tokens_of), window.rate(tokens_of), window.difference(tokens_of)) == (None, None, None)
    assert Window(MINUTE, [look(0, 0.0), look(0.001, 1e308)]).rate(tokens_of) is None


def test_odd_rows_of_another_program_break_nothing() -> None:
    odd = [look(0, 1.0, counters=[1], histograms={"ttft": 3}), look(1, 2.0, counters={"a": "b"}, histograms="x")]
    window = Window(MINUTE, odd)
    assert (window.increase(tokens_of), window.total("counters"), window.histogram("ttft")) == (1.0, None, None)


def test_a_window_over_scrapes_of_a_real_server() -> None:
    scrapes = [
        parse_metrics((H200 / f"metrics/kv-starved-load-{second}.txt").read_text(), moment(int(second)), 0.0)
        for second in ("00", "03", "06", "09", "12")
    ]
    window = Window(MINUTE, (to_record(scrape, NO_GPU) for scrape in scrapes))
    assert window.rate(tokens_of, 3.0) == (20746 - 14365) / 3
    ended = window.histogram("e2el")
    assert ended is not None
    assert ended.count == 27.0
    assert replace(window.samples[0], raw={}).at == moment(0)
