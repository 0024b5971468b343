"""From samples to charts, without a screen: rates over any spacing, gaps, restarts, marks, what a panel says."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from store.clock import parse_utc
from store.records import SampleRecord
from tests.calls import calls
from tests.tui.panel_samples import HOSTILE_NUMBERS, HOSTILE_TEXTS, START, STARVED, scraped
from tests.tui.run_recording import BEGIN, RUN_S, sample, samples
from tests.tui.tune_session import stamp
from tui.braille import canvas
from tui.chart import Point, round_top, time_ticks
from tui.chart_stack import Frame, axis_rows, figure, panel_rows, scale_label
from tui.runs import run_series
from tui.runs.run_charts import Charts, Panel, charts

ZERO = parse_utc(stamp(BEGIN)).timestamp()
OWN = (0.0, float(RUN_S))


def drawn(recorded: Sequence[SampleRecord], own: tuple[float, float] = OWN, **more: Any) -> Charts:
    return charts(recorded, ZERO, (own[0] - 10, own[1] + 5), own, **more)


def panel(found: Charts, key: str) -> Panel:
    return next(one for one in found.panels if one.key == key)


def values(points: Sequence[Point]) -> list[float | None]:
    return [y for _, y in points]


def known(points: Sequence[Point], after: float, before: float) -> list[float]:
    return [y for x, y in points if x is not None and y is not None and after < x <= before]


def below_20_ms(count: int) -> dict[str, Any]:
    return {"sum": 0.01, "count": count, "corners": [[0.02, count], [None, count]]}


def text(rows: Sequence[Sequence[tuple[str, str]]]) -> str:
    return "\n".join("".join(character for character, _ in row) for row in rows)


# what is drawn


def test_a_run_has_scheduler_load_and_gpu_on_one_axis() -> None:
    found = drawn(samples(), max_num_seqs=256.0)
    assert found.groups == ("scheduler", "load", "GPU")
    assert [one.key for one in found.panels] == [
        *("kv", "requests", "preemptions"), *("tokens", "finished", "ttft"), *("memory", "util", "power", "clock"),
    ]  # fmt: skip
    output, prompt = panel(found, "tokens").lines
    assert set(known(output.points, 1, 59)) == {4500.0}
    assert set(known(prompt.points, 1, 59)) == {9000.0}
    assert set(known(panel(found, "finished").lines[0].points, 1, 59)) == {35.0}
    assert panel(found, "requests").limit is not None
    assert "256" in panel(found, "requests").limit.words  # type: ignore[union-attr]
    budget, power = panel(found, "memory").limit, panel(found, "power").limit
    assert budget is not None
    assert budget.value == pytest.approx(0.92 * 140.4)
    assert power is not None
    assert power.value == 700.0
    clock = panel(found, "clock")
    assert [round(at) for at in clock.flags] == [40, 41, 42, 43, 44, 45]
    assert clock.flag_words == "power cap"
    assert [(mark.glyph, round(mark.at)) for mark in found.marks] == [("p", 31)]


def test_percentiles_come_from_what_came_in_between_and_say_where_they_are_only_a_bound() -> None:
    p50, p90 = panel(drawn(samples()), "ttft").lines
    assert known(p50.points, 1, 59) == pytest.approx([80.0] * len(known(p50.points, 1, 59)), rel=0.05)
    assert known(p90.points, 1, 59) == pytest.approx([320.0] * len(known(p90.points, 1, 59)), rel=0.2)
    assert known(p50.points, -20, -0.5) == []  # nothing came in
    assert (p50.summary, p90.summary) == ("80", "320")
    quick = [replace(one, raw={"histograms": {"ttft": below_20_ms(9 * at)}}) for at, one in enumerate(samples())]
    found = drawn(quick)
    line = panel(found, "ttft").lines[0]
    assert figure(line, panel(found, "ttft"), 30.0, 1.0) == "<20 ms"
    assert line.summary == "<20"


def test_recorded_pages_of_a_starved_server() -> None:
    recorded = [scraped(page, second) for page, second in STARVED]
    found = charts(recorded, START.timestamp(), (-1.0, 51.0), (0.0, 50.0))
    assert found.groups == ("scheduler", "load")  # those pages are of the server alone
    assert max(known(panel(found, "kv").lines[0].points, -1, 51)) > 90
    assert max(known(panel(found, "preemptions").lines[0].points, -1, 51)) > 0
    assert any(mark.words == "preemptions began" for mark in found.marks)


def test_several_gpus_show_the_slowest_and_the_least_busy_beside_what_they_come_to() -> None:
    idle = {"index": 1, "util_perc": 3.0, "power_limit_w": 700.0, "mem_total_gib": 140.4, "sm_clock_mhz": 1200.0}
    pair = [replace(one, gpu_util_perc=50.0, raw={**one.raw, "gpus": [*one.raw["gpus"], idle]}) for one in samples()]
    found = drawn(pair)
    mean, least = panel(found, "util").lines
    assert (set(known(mean.points, 1, 59)), max(known(least.points, 1, 59))) == ({50.0}, 3.0)
    assert panel(found, "clock").title == "GPU clock (slowest)"
    assert set(known(panel(found, "clock").lines[0].points, 1, 59)) == {1200.0}
    power, memory = panel(found, "power").limit, panel(found, "memory").limit
    assert power is not None
    assert power.value == 1400.0
    assert memory is not None
    assert memory.value == pytest.approx(0.92 * 280.8)


def test_what_no_sample_has_gets_no_panel() -> None:
    bare = [SampleRecord(at=one.at, running=one.running, waiting=one.waiting) for one in samples()]
    assert [one.key for one in drawn(bare).panels] == ["requests"]
    assert drawn([]).panels == ()
    assert drawn([]).groups == ()


# spacing, gaps, restarts


@pytest.mark.parametrize("every", [1, 5, 10])
def test_a_rate_is_per_second_whatever_lies_between_two_samples(every: int) -> None:
    line = panel(drawn(samples()[::every]), "tokens").lines[0]
    assert set(known(line.points, every, RUN_S - every)) == {4500.0}


def test_old_samples_thinned_beside_new_ones_are_one_line_with_their_peaks() -> None:
    thinned = [
        replace(one, kv_perc=10.0, raw={**one.raw, "thinned": {"samples": 10, "peak": {"kv_perc": 97.0}}})
        for one in samples(-600, -10)[::10]
    ]
    found = charts([*thinned, *samples()], ZERO, (-600.0, 65.0), (-600.0, 65.0))
    points = panel(found, "kv").lines[0].points
    assert None not in values(points)
    assert set(known(points, -600, -15)) == {97.0}


def test_a_gap_stays_a_gap_and_so_does_a_silence() -> None:
    silent: dict[str, Any] = {
        "running": None,
        "waiting": None,
        "kv_perc": None,
        "generation_tokens": None,
        "prompt_tokens": None,
    }
    recorded = [one for at, one in enumerate(samples()) if not 30 <= at < 45]
    recorded[50] = replace(recorded[50], **silent, raw={"error": "no answer within 2 s"})
    found = drawn(recorded)
    for key in ("kv", "tokens", "requests"):
        assert values(panel(found, key).lines[0].points).count(None) == 2, key
    assert [mark.words for mark in found.marks if mark.glyph == "?"] == ["no answer from the server"]
    kv = panel(found, "kv")
    assert figure(kv.lines[0], kv, 27.0, 1.0) == "–"
    assert figure(kv.lines[0], kv, 10.0, 1.0) == "33.0 %"


def test_no_rate_leads_through_a_restart() -> None:
    before = samples(0, 30)
    after = [
        replace(sample(float(second)), generation_tokens=4500.0 * (second - 31), raw={"process_start": 2000.0})
        for second in range(31, 50)
    ]
    found = drawn([*before, *after])
    points = panel(found, "tokens").lines[0].points
    assert set(known(points, 1, 60)) == {4500.0}
    assert values(points).count(None) == 1
    assert [round(mark.at) for mark in found.marks if mark.glyph == "x"] == [31]


def test_two_samples_of_one_moment_make_no_rate() -> None:
    doubled = sorted([*samples(), replace(sample(20.01), generation_tokens=4500.0 * 20 + 400)], key=lambda one: one.at)
    rates = known(panel(drawn(doubled), "tokens").lines[0].points, 1, 59)
    assert max(rates) < 1.2 * 4500


def test_mean_and_peak_are_of_the_load_alone_and_over_time() -> None:
    assert panel(drawn(samples()), "power").lines[0].summary.endswith("max 640")
    mean, highest = run_series.over(((0.0, 0.0), (10.0, 100.0), (11.0, 100.0)), (0.0, 11.0))
    assert mean == pytest.approx((50 * 10 + 100) / 11)
    assert highest == 100.0


# drawing


def test_panels_of_one_frame_line_up_and_the_cursor_reads_each() -> None:
    found = drawn(samples(), max_num_seqs=256.0)
    frame = Frame(found.span, 79)
    cursor = frame.column(30.0)
    assert cursor is not None
    assert frame.column(frame.moment(cursor)) == cursor
    rows = [panel_rows(one, frame, 5, found.marks, cursor, {}) for one in found.panels]
    for one in rows:
        assert {len(row) for row in one} == {79}
        assert len(one) == 5
        assert {row[8][0] for row in one[1:]} == {"│"}
        assert all(row[9 + cursor][1] in ("bold", "reverse") and row[9 + cursor][0] != " " for row in one[1:])
    assert "99.0 %" in text(rows[0])
    assert "● running 184" in text(rows[1])
    assert "▲ waiting 16" in text(rows[1])
    assert "┈ budget 0.92: 129.2 GiB" in text(rows[6])
    assert "▲ held back: power cap" in text(rows[9])
    assert "┈┈┈" in text(panel_rows(found.panels[8], frame, 7, (), None, {}))


def test_a_kept_picture_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found, kept = drawn(samples()), {}  # type: ignore[var-annotated]
    frame = Frame(found.span, 79)
    first = panel_rows(found.panels[0], frame, 5, (), 10, kept)
    monkeypatch.setattr("tui.braille.canvas", lambda *_: pytest.fail("drawn again"))
    assert panel_rows(found.panels[0], frame, 5, (), 10, kept) == first
    assert panel_rows(found.panels[0], frame, 5, (), 11, kept) != first


def test_the_axis_has_its_moments_and_what_happened() -> None:
    found = drawn(samples())
    axis, below = axis_rows(Frame(found.span, 79), found.marks, lambda moment: f"{moment:.0f}", 0.0)
    assert text([axis]).count("p") == 1
    assert [word for word in text([below]).split() if word != "0"] == ["15", "30", "45", "60"]


def test_lines_of_one_panel_are_told_apart_without_colour() -> None:
    found = drawn(samples())
    rows = text(panel_rows(panel(found, "tokens"), Frame(found.span, 79), 8, (), None, {})[1:])
    assert rows.count("●") >= 3
    assert rows.count("▲") >= 3


def test_hostile_numbers_reach_no_picture() -> None:
    fields = (
        *("running", "waiting", "kv_perc", "preemptions", "prompt_tokens", "generation_tokens"),
        *("gpu_mem_used_gib", "gpu_util_perc", "gpu_power_w"),
    )
    recorded: list[SampleRecord] = []
    for at in range(40):
        value = HOSTILE_NUMBERS[at % len(HOSTILE_NUMBERS)]
        gpu = dict.fromkeys(("mem_total_gib", "power_limit_w", "sm_clock_mhz"), value) | {
            "throttle_reasons": [value, "x"]
        }
        raw = {
            "gpus": [gpu, None, "gpu"],
            "requests_finished": {"stop": value},
            "gpu_memory_utilization": value,
            "thinned": {"peak": {"kv_perc": value}},
            "histograms": {"ttft": {"sum": value, "count": value, "corners": [[0.1, value], [value, 1.0]]}},
        }
        recorded.append(SampleRecord(at=stamp(BEGIN + at), raw=raw, **dict.fromkeys(fields, value)))
    found = drawn(recorded, max_num_seqs=math.inf)
    for one in found.panels:
        for width, height in ((79, 5), (69, 8), (20, 3)):
            rows = text(panel_rows(one, Frame(found.span, width), height, found.marks, 3, {}))
            assert not {"nan", "inf", "e+"} & set(re.findall(r"nan|inf\b|e\+", rows)), rows
        for line in one.lines:
            assert all(y is None or math.isfinite(y) for y in values(line.points))


def test_hostile_words_stay_one_cell_a_character() -> None:
    for words in HOSTILE_TEXTS:
        recorded = [
            replace(one, raw={"gpus": [{"sm_clock_mhz": 1.0, "throttle_reasons": [words]}]}) for one in samples()
        ]
        found = drawn(recorded)
        row = panel_rows(panel(found, "clock"), Frame(found.span, 110), 4, (), None, {})[0]
        assert len(row) == 110
        assert "\x1b" not in text([row])


# the parts


@pytest.mark.parametrize(
    "points", [[], [(0.0, math.nan)], [(math.nan, 1.0)], [(None, None)], [(1e300, 1.0)], [(0.0, 1e300)]]
)
def test_an_empty_line_is_blank_and_nothing_kills(points: list[Point]) -> None:
    assert canvas(points, (0.0, 10.0), (0.0, 1.0), 20, 3) == [" " * 20] * 3


def test_a_line_keeps_its_peaks_and_its_gap() -> None:
    many: list[Point] = [(float(x), 0.0) for x in range(10_000)]
    many[5_000] = (5_000.0, 100.0)
    many[7_000:8_000] = [(7_500.0, None)]
    rows = canvas(many, (0.0, 9_999.0), (0.0, 100.0), 60, 4)
    assert rows[0].strip() != ""
    assert rows[3][43:47].strip() == ""
    assert canvas([(0.0, 5.0), (1.0, 9e14)], (0.0, 1.0), (0.0, 10.0), 20, 3)[0].strip() != ""
    assert canvas([(0.0, 1.0)], (0.0, 0.0), (0.0, 1.0), 4, 2) == ["    ", "    "]


def test_axis_numbers() -> None:
    assert [round_top(value) for value in (0.0, -3.0, 0.0012, 7.0, 71.4, 188_688.0)] == [1, 1, 0.0015, 8, 80, 200_000]
    assert [scale_label(value) for value in (0.0015, 1.5, 40, 30_000, 1.5e6, 2e12)] == [
        *("0.0015", "1.5", "40", "30,000", "1.5 M", "2 T")
    ]  # fmt: skip
    assert time_ticks((-4.3, 61.2), 6) == [0.0, 15.0, 30.0, 45.0, 60.0]
    assert time_ticks((0.0, 7 * 86400.0), 4) == [0.0, 172800.0, 345600.0, 518400.0]
    assert time_ticks((0.0, 3600.0), 4, offset=600.0) == [300.0, 1200.0, 2100.0, 3000.0]  # quarters of an hour
    assert time_ticks((5.0, 5.0), 4) == []


def test_a_picture_of_all_panels_costs_little() -> None:
    """A tenth of a second; each of the ten panels shows 1,200 samples."""
    found = charts([sample(float(second)) for second in range(-600, 600)], ZERO, (-600.0, 600.0), (-600.0, 600.0))

    def draw() -> None:
        for one in found.panels:
            panel_rows(one, Frame(found.span, 69), 7, found.marks, 5, {})

    assert calls(draw) < 300_000
