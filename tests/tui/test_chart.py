"""Charts: what plotext must never be given, and what a person sees."""

import math

import pytest

from tui.chart import Axes, Series, broken_runs, draw, limits_of, thinned, tick_label

NAN, INF = math.nan, math.inf


def test_what_kills_plotext_is_dropped_and_breaks_the_line() -> None:
    values = [1.0, NAN, INF, None, 1e300, 2.0, 3.0]
    points = tuple((float(x), y) for x, y in enumerate(values))
    assert broken_runs(points) == [[(0.0, 1.0)], [(5.0, 2.0), (6.0, 3.0)]]
    picture = draw([Series(points)], Axes(), 60, 14)
    assert picture.plain.count("●") == 3
    assert "1e" not in picture.plain


@pytest.mark.parametrize("points", [[], [(0.0, NAN)], [(NAN, 1.0)], [(None, None)]])
def test_nothing_measured_is_said(points: list[tuple[float | None, float | None]]) -> None:
    assert draw([Series(tuple(points))], Axes(), 60, 14).plain == "nothing to draw: no measured value yet"


def test_a_value_far_beyond_a_fixed_axis_is_clamped_to_it() -> None:
    picture = draw([Series(((0.0, 50.0), (1.0, 5e14)))], Axes(y_limits=(0.0, 100.0)), 60, 12).plain
    assert "100.0" in picture
    assert picture.count("●") == 2


def test_categories_stand_under_the_axis_and_it_has_the_size_asked_for() -> None:
    ticks = ((0.0, "default"), (1.0, "2048"), (2.0, "[/x]"))
    series = [Series(((0.0, 27245.0), (1.0, 27615.0), (2.0, 19310.0)))]
    lines = draw(series, Axes("batched", "total tok/s", ticks), 78, 18).plain.splitlines()
    assert len(lines) == 18
    assert max(map(len, lines)) <= 78
    below = lines[-2]
    assert below.index("default") < below.index("2048") < below.index("[/x]")
    assert "total tok/s" in lines[0]


def test_one_point_constant_values_and_no_room() -> None:
    assert "●" in draw([Series(((0.0, 5.0),))], Axes(), 40, 10).plain
    assert draw([Series(((0.0, 0.0), (1.0, 0.0)))], Axes(), 40, 10).plain.count("●") == 2
    assert "larger" in draw([Series(((0.0, 5.0),))], Axes(), 10, 3).plain
    low, high = limits_of([7.0, 7.0])
    assert low < 7.0 < high


def test_many_points_are_thinned_to_twice_the_width_with_both_ends_kept() -> None:
    run = [(float(x), float(x % 7)) for x in range(100_000)]
    few = thinned(run, 2 * 78)
    assert len(few) == 156
    assert few[0] == run[0]
    assert few[-1] == run[-1]
    assert "●" in draw([Series(tuple(run))], Axes(), 78, 18).plain


def test_figures_are_independent() -> None:
    first = draw([Series(((0.0, 1.0), (1.0, 2.0)))], Axes(), 60, 12).plain
    draw([Series(((0.0, 900.0), (1.0, 20.0)))], Axes(y_label="another"), 70, 20)
    assert draw([Series(((0.0, 1.0), (1.0, 2.0)))], Axes(), 60, 12).plain == first


def test_no_escape_leaves_the_chart() -> None:
    assert "\x1b" not in draw([Series(((0.0, 1.0), (1.0, 2.0)))], Axes(), 60, 12).plain


def test_tick_labels_are_short() -> None:
    labels = [tick_label(value) for value in (0, 0.0123, 9.81, 27245, 188688, 3e12)]
    assert labels == ["0", "0.01230", "9.810", "27,245", "188,688", "3.00e+12"]
