"""Histories of a window: slots of time, each worked out once, with their gaps."""

from typing import Any

import pytest

from engine.samples.window import Window
from store.records import SampleRecord
from tests.tui.panel_samples import at, made, starved, texts
from tui.panels.histories import History, history_rows, how_many
from tui.panels.row import width_of
from tui.panels.slots import Slots, gauge, growth_rate, percentile_of, slots_across


def test_slots_hold_means_growth_and_percentiles_of_their_time() -> None:
    window = made([{"running": float(n), "generation_tokens": 100.0 * n} for n in range(20)], 20.0)
    slots = Slots()
    slots.follow(window, 10)
    assert slots.values("running", gauge(lambda sample: sample.running)) == [n + 0.5 for n in range(0, 20, 2)]
    rates = slots.values("tokens", growth_rate(lambda sample: sample.generation_tokens))
    assert rates[1:] == [100.0] * 9
    ttft = Slots()
    ttft.follow(starved(), 60)
    found = ttft.values("ttft", percentile_of("ttft", 50.0))
    assert [value for value in found if value is not None][-1] == pytest.approx(29.9, abs=1.0)


def test_slots_work_out_only_what_is_new() -> None:
    calls: list[int] = []

    def noted(before: Any, held: Any) -> float:
        calls.append(len(held))
        return 1.0

    samples = [SampleRecord(at=at(second), running=1.0) for second in range(120)]
    window, slots = Window(60.0, samples[:60]), Slots()
    for sample in samples[60:]:
        window.add(sample)
        slots.follow(window, 30)
        slots.values("x", noted)
    assert len(calls) < 30 + 60 + 30  # each slot once when it is over, and the open one at each tick
    other = Window(300.0, samples)
    slots.follow(other, 30)
    assert len(slots.values("x", noted)) == 30


def test_slots_fill_the_columns_evenly() -> None:
    assert slots_across(58, 60.0) == 29  # two columns each: a slot shorter than 2 s would often be empty
    assert slots_across(58, 900.0) == 58
    assert slots_across(39, 60.0) == 19
    assert slots_across(1, 60.0) == slots_across(5, 1.0) == 1
    slots = Slots()
    slots.follow(starved(), slots_across(58, 60.0))
    assert all(width_of(row) == 58 for row in history_rows(slots, 60.0, True, 58, 8))


def test_a_gap_stays_a_gap_and_a_restart_is_no_rate() -> None:
    samples = [SampleRecord(at=at(second), generation_tokens=t) for second, t in ((0, 0), (2, 10), (8, 40), (10, 5))]
    slots = Slots()
    slots.follow(Window(12.0, samples), 3)
    values = slots.values("tokens", growth_rate(lambda sample: sample.generation_tokens))
    assert values[-1] is None  # it fell
    assert None in values[:-1] or len(values) < 3


def test_a_single_look_that_failed_leaves_no_hole() -> None:
    tokens = (0, 10, 20, None, 40, 50, 60, 70)
    slots = Slots()
    slots.follow(made([{"generation_tokens": t} for t in tokens], 8.0), 4)
    assert slots.values("tokens", growth_rate(lambda sample: sample.generation_tokens))[-3:] == [10.0, 10.0, 10.0]


def test_what_a_bucket_leaves_open_stands_at_the_bottom_of_a_history() -> None:
    def scrape(count: float) -> dict[str, Any]:
        return {
            "raw": {"histograms": {"ttft": {"sum": 0.0, "count": count, "corners": [[0.01, count], [None, count]]}}}
        }

    slots = Slots()
    slots.follow(made([scrape(float(n)) for n in range(8)], 8.0), 4)
    assert slots.values("ttft", percentile_of("ttft", 99.0))[-1] == -0.01
    rows = texts(history_rows(slots, 8.0, True, 39, 4))
    assert rows[0].split()[:4] == ["TTFT", "p99", "<10", "ms"]
    assert set(rows[-1].strip()) == {"▁"}


def test_histories_fill_their_room_and_say_their_scale() -> None:
    slots = Slots()
    slots.follow(starved(), 50)
    rows = history_rows(slots, 60.0, True, 58, 13)
    assert len(rows) == 13
    assert "0 to 77" in texts(rows)[0] or "0 to 7" in texts(rows)[0]
    assert texts(rows)[0].startswith("TTFT p99")
    assert any("█" in text for text in texts(rows))
    assert [how_many(height) for height in (0, 2, 3, 4, 7, 8)] == [0, 0, 1, 1, 1, 2]
    assert all(width_of(row) == 58 for row in rows)
    silent = history_rows(slots, 60.0, False, 58, 13)
    assert silent[0][1][0].strip() == "–"


def test_nothing_but_zeros_and_nothing_at_all_are_told_apart() -> None:
    never = History("preempted", growth_rate(lambda sample: sample.preemptions), str)
    slots = Slots()
    slots.follow(made([{"preemptions": 0.0}] * 8, 8.0), 4)
    assert "0 throughout" in texts(history_rows(slots, 8.0, True, 39, 4, [never]))[0]
    unknown = Slots()
    unknown.follow(made([{}] * 8, 8.0), 4)
    head = texts(history_rows(unknown, 8.0, True, 39, 4, [never]))[0]
    assert head.split() == ["preempted", "–", "–"]
