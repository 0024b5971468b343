"""Latencies of a window: percentiles, what the buckets leave open, units that stand still."""

import re
from dataclasses import replace

import pytest

from engine.samples.window import Window
from engine.scrape.histograms import Percentile
from tests.tui.panel_samples import line, scraped, starved, texts
from tui.panels.latencies import FULL, Units, latency_rows, latency_text, percentile_text, read_latencies


def test_latencies_of_a_recorded_load_are_those_of_its_window() -> None:
    rows = latency_rows(read_latencies(starved(), FULL), FULL, 60.0, True, 68, Units())
    assert texts(rows) == [
        "last 60 s      p50       p90       p99      mean        count",
        "TTFT          23.0 s    55.0 s    77.5 s    23.0 s        200",
        "ITL           17.6 ms   23.7 ms   33.5 ms   16.1 ms    99,800",
        "TPOT          18.2 ms   24.7 ms   46.9 ms   16.1 ms       200",
        "queue         22.3 s    44.3 s    55.0 s    22.6 s        200",
        "prefill        357 ms    480 ms    714 ms    305 ms       200",
        "decode        8.03 s    12.1 s    14.7 s    8.04 s        200",
        "end to end    28.5 s    54.3 s    59.4 s    31.1 s        200",
    ]
    lately = Window(8.0, [scraped("kv-starved-load-09", 9), scraped("kv-starved-load-12", 12)])
    shown = line(latency_rows(read_latencies(lately, FULL), FULL, 8.0, True, 68, Units()), "ITL")
    assert shown.split()[-1] == "6,381"  # what came in between the two, not all that the server counts


def test_what_buckets_leave_open_is_said() -> None:
    units = Units()
    assert percentile_text(Percentile(None, False, upper=0.01), units, 0) == "<10 ms"
    assert percentile_text(Percentile(None, False, lower=2560.0), units, 0) == ">2,560 s "
    assert percentile_text(Percentile(None, False, upper=0.0005), units, 0) == "<0.5 ms"
    assert percentile_text(None, units, 0) == "–   "


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00821, "8.21 ms"), (0.0099951, "10.0 ms"), (0.0123, "12.3 ms"), (0.1711, "171 ms"), (0.9994, "999 ms"),
        (1.16, "1.16 s "), (12.34, "12.3 s "), (99.96, "100 s "), (2560.0, "2,560 s "), (None, "–   "),
        (-0.01, "<10 ms"), (1e300, "1.0e+300 s "), (0.0, "0.00 ms"),
    ],
)  # fmt: skip
def test_latencies_have_three_digits_and_a_unit(seconds: float | None, text: str) -> None:
    assert latency_text(seconds) == text


def test_a_unit_does_not_jump_around_a_second() -> None:
    units = Units()
    shown = []
    for seconds in (0.97, 1.02, 0.99, 1.05, 1.12, 1.02, 0.95, 0.90):
        shown.append(percentile_text(Percentile(seconds, True), units, "p50").split()[1])
    assert shown == ["ms", "ms", "ms", "ms", "s", "s", "s", "ms"]


def test_without_requests_or_an_answer_no_latency_is_shown() -> None:
    idle = Window(60.0, [scraped("idle-after-load", 0), replace(scraped("idle-after-load", 1))])
    for rows in (
        latency_rows(read_latencies(idle, FULL), FULL, 60.0, True, 68, Units()),
        latency_rows({}, FULL, 60.0, False, 68, Units()),
        latency_rows(read_latencies(Window(60.0), FULL), FULL, 60.0, True, 68, Units()),
    ):
        for row in texts(rows[1:]):
            assert re.fullmatch(r"[A-Za-z ]+?( +–){4}( +[–0])?", row), row
