"""The Monitor's pure parts: histories in columns, blocks in their order, the samples that a window is begun with."""

import random
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from engine.limiting.bottleneck import Limit
from store.clock import format_utc
from store.records import SampleRecord
from tests.tui.conftest import NOW
from tui.monitor.history import History
from tui.monitor.monitor_layout import places
from tui.monitor.subject import Look, Subject, subject_of
from tui.monitor.watched import Watched
from tui.monitor.watching import Watching
from tui.panels.gauges import gauge_rows, history_width, readings
from tui.panels.limit import lines_wanted
from tui.panels.row import text_of
from tui.panels.state import state_rows


def at(second: float) -> SampleRecord:
    return SampleRecord(at=format_utc(NOW + timedelta(seconds=second)), running=second, generation_tokens=10 * second)


def filled(seconds: list[float], window_s: float, count: int, counter: bool = False) -> History:
    history = History(lambda sample: sample.generation_tokens if counter else sample.running, counter)
    history.rebuild([(second, at(second)) for second in seconds], window_s, count, 1.0)
    return history


def test_columns_keep_gaps_and_bridge_a_missed_look() -> None:
    history = filled([float(second) for second in range(60) if second not in (20, *range(40, 50))], 60.0, 60)
    columns = history.columns(59.0)
    assert len(columns) == 60
    assert columns[20:22] == [21.0, 21.0]
    assert columns[40:50] == [None] * 10
    assert columns[59] == 59.0
    assert history.columns(159.0) == [None] * 60  # it ended long ago
    assert len(filled([0.0, 1.0], 60.0, 12).columns(1.0)) == 12
    assert filled([], 60.0, 5).columns(0.0) == [None] * 5


def test_one_that_was_looked_at_less_often_has_no_gaps_for_it() -> None:
    history = filled([*(5.0 * second for second in range(10)), 46.0, 47.0, 48.0], 48.0, 24)
    assert None not in history.columns(48.0)[1:]
    history.add(60.0, at(60.0))
    assert history.columns(60.0)[-5:-1] == [None] * 4  # now it is looked at each second


def test_columns_that_grow_are_those_that_are_built() -> None:
    chance = random.Random(4)
    times = sorted(chance.uniform(0, 120) for _ in range(150))
    grown = filled([], 60.0, 26, counter=True)
    for second in times:
        grown.add(second, at(second))
    # What lies before the window gives its first column less than it had.
    assert grown.columns(times[-1])[1:] == pytest.approx(filled(times, 60.0, 26, counter=True).columns(times[-1])[1:])


def test_a_rate_has_gaps_at_restarts_and_where_nothing_was_read() -> None:
    history = History(lambda sample: sample.generation_tokens, counter=True)
    history.rebuild([], 10.0, 10, 1.0)
    for second, value in enumerate((100.0, 150.0, None, 250.0, 10.0, 30.0, float("nan"))):
        history.add(float(second), SampleRecord(at=format_utc(NOW), generation_tokens=value))
    assert history.columns(6.0)[-7:] == [None, 50.0, None, None, None, 20.0, None]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_blocks_never_take_more_lines_than_there_are(width: int) -> None:
    for height, state, gpu in product(range(1, 60), (1, 2, 4), (1, 3, 12)):
        found = places(width, height, state, gpu, overview=3)
        assert 0 < found.lines <= height
        assert (found.side > 0) == (width >= 120)


def test_a_terminal_of_80x24_has_all_that_must_be_seen_at_once() -> None:
    found = places(80, 22)
    assert (found.state, found.gauges, found.latencies, found.gpu, found.limit) == (2, 6, 5, 3, 2)
    assert found.events >= 2
    trouble = places(80, 22, state=4)
    assert (trouble.gauges, trouble.latencies, trouble.gpu, trouble.limit) == (6, 5, 3, 2)


def test_what_limits_a_server_has_its_third_line_where_there_is_room() -> None:
    assert (places(80, 22, gpu=1, limit=3).limit, places(80, 22, gpu=1).limit) == (3, 2)
    assert places(80, 22, gpu=3, state=4, limit=3).limit == 2
    long = Limit("kv", "KV-bound (all 8 engines): KV above 95 % for the last 46 s, 137 preemptions.", {}, "Raise " * 20)
    assert (lines_wanted(None, 78), lines_wanted(long, 78), lines_wanted(long, 300)) == (2, 3, 2)


def test_a_long_list_of_servers_leaves_room_for_the_shown_one() -> None:
    assert places(140, 43, overview=3).overview == 4
    many = places(140, 43, overview=40)
    assert many.overview == 10
    assert (many.gauges, many.latencies, many.limit) == (6, 8, 2)
    assert places(80, 22, overview=3).overview == 0


def test_what_matters_most_goes_last() -> None:
    small = places(80, 10)
    assert (small.state, small.gauges) == (2, 5)
    assert not small.events
    assert not small.rules
    tiny = places(20, 3)
    assert (tiny.state, tiny.gauges, tiny.latencies) == (1, 2, 0)


def test_a_longer_window_begins_with_what_is_known() -> None:
    watched = Watched(NOW.timestamp())
    for second in range(1000):
        watched.add(at(second))
    assert watched.window.seen() == 60.0
    watched.reach(900.0)
    assert watched.window.seen() == pytest.approx(900.0, abs=5.0)
    assert len(watched.window) < 250  # of the distant past one in five seconds
    watched.add(at(1000))
    assert watched.window.newest == at(1000)
    assert watched.rate("output") == pytest.approx(10.0)
    columns = watched.history("running", watched.newest_at or 0.0, 30)
    assert None not in columns[1:]
    watched.add(at(999))  # late: dropped
    assert watched.newest == at(1000)


def test_what_happened_stands_once_after_another_window_was_read() -> None:
    def seen(first: int, last: int) -> Watched:
        """Its engine stood still from 20 s to 40 s."""
        watched = Watched(NOW.timestamp())
        watched.fill(
            replace(at(second), running=3, generation_tokens=10.0 * (second if second < 20 else max(20, second - 20)))
            for second in range(first, last)
        )
        return watched

    def told(watched: Watched) -> list[str]:
        return [event.text for event in watched.events]

    whole = told(seen(0, 60))
    assert [text.split(" for ")[0] for text in whole[:1]] == ["its engine has computed nothing"]
    assert len(whole) == 2
    late = seen(24, 60)
    assert told(late) != whole  # it saw less of the stall
    late.adopt(seen(0, 60))  # a longer window
    assert told(late) == whole
    late.adopt(seen(24, 60))  # and a shorter one again
    assert told(late) == whole
    early = seen(0, 35)
    early.adopt(seen(24, 60))
    assert told(early)[0] == whole[0]
    assert len(told(early)) == 2


@pytest.mark.parametrize("width", [80, 96])
def test_a_figure_of_a_gauge_is_never_cut(width: int) -> None:
    watching = Watching(("http://127.0.0.1:8500",), None, NOW.timestamp())
    server = watching.foreign["http://127.0.0.1:8500"]
    for second, total in enumerate((0.0, 5e8)):
        server.add(
            replace(
                at(second),
                running=1e300,
                waiting=12_345,
                prompt_tokens=total,
                preemptions=1e200 + 1e190 * second,
                raw={"waiting_by_reason": {"capacity": 12_345.0, "deferred": 0.0}, "requests_finished": {"stop": 1e99}},
            )
        )
    subject = subject_of(watching, "http://127.0.0.1:8500", Look(NOW, 60.0, 1.0, 0, 1, False))
    history = [1.0] * history_width(width)
    rows = {one.label: text_of(gauge_rows(one, history, width)[0]) for one in readings(subject)}
    assert rows["running"].split()[1] == "1.0e+300"
    assert rows["waiting"].split()[1] == "12,345"
    assert rows["waiting"].rstrip().endswith("  capacity 12,345")
    assert rows["prompt"].split()[1] == "5.0e+08/s"
    assert "preempted 1.0e+200 " in rows["prompt"]
    assert rows["requests"].rstrip().endswith("finished    1.0e+99")
    assert len({row.index("▁" if "▁" in row else "█") for row in rows.values()}) == 1  # no value pushes its history


@pytest.mark.parametrize("width", [78, 60, 40, 24, 12])
def test_the_first_line_loses_its_name_before_a_figure_and_never_half_a_figure(width: int) -> None:
    words = ("x" * 28, "192.168.100.100:8000", "vLLM 0.25.1", "up 12:04:10")
    subject = Subject(Look(NOW, 60.0, 1.0, 0, 1, False), 0.0, Watched(0.0), ("● answers", ""), words=words)
    shown = text_of(state_rows(subject, width)[0]).rstrip()
    assert len(shown) <= width
    found = shown.split("  ")
    assert found[0] == "● answers"
    assert all(word in words for word in found[2:])
    assert (found[2:] == list(words[1:])) == (width == 78)
