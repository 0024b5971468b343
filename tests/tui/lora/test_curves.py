"""The curves of a training, in any room and of any numbers."""

import math
from pathlib import Path

import pytest

from tests.tui.hostile import NUMBERS
from tests.tui.lora_world import (
    STEPS,
    progress_lines,
    shown,
    tail,
)
from tui.lora.curves import charts_of, curve_rows, loss_text, rate_text, trailing_mean
from tui.lora.lines import (
    size_text,
)
from tui.lora.progress import Progress, Step
from tui.lora.words import perplexity
from tui.panels.row import text_of, width_of


@pytest.mark.parametrize(("width", "height"), [(80, 8), (58, 40), (19, 5), (200, 60)])
def test_curves_fill_their_room_and_no_more(tmp_path: Path, width: int, height: int) -> None:
    rows = curve_rows(tail(tmp_path, progress_lines()).read(), width, height)
    assert len(rows) in (height, height - 1)
    assert {width_of(row) for row in rows} == {width}
    text = shown(rows)
    assert "loss" in text
    assert ("learning rate" in text) == (height >= 14)


def test_there_is_no_curve_where_there_is_no_room() -> None:
    assert curve_rows(Progress(), 80, 4) == []
    assert curve_rows(Progress(), 10, 30) == []


def test_an_evaluation_is_told_apart_without_colours(tmp_path: Path) -> None:
    rows = curve_rows(tail(tmp_path, progress_lines()).read(), 80, 20)
    dots = "\n".join(text_of(row) for row in rows[1:])
    assert dots.count("●") == STEPS // 40


def test_single_losses_are_joined_by_their_mean() -> None:
    assert trailing_mean([(1.0, 1.0), (2.0, 3.0), (3.0, 5.0)], 2) == ((2.0, 2.0), (3.0, 4.0))
    few, many = (tuple(Step(at, loss=float(at)) for at in range(1, count)) for count in (12, 61))
    assert [curve.label for curve in charts_of(Progress(few))[0].curves] == ["training", "evaluation"]
    assert [curve.label for curve in charts_of(Progress(many))[0].curves] == ["training", "mean of 10", "evaluation"]
    assert charts_of(Progress(many))[0].curves[1].points[-1] == (60.0, 55.5)


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_breaks_a_curve(name: str) -> None:
    values = NUMBERS[name]
    steps = tuple(
        Step(at, *(values[(at + of) % len(values)] for of in range(8)))  # no tail lets these through
        for at in range(1, 40)
    )
    for size in ((80, 10), (58, 42)):
        rows = curve_rows(Progress(steps, 50), *size)
        assert {width_of(row) for row in rows} == {size[0]}
        assert "nan" not in shown(rows).lower()
        assert "inf" not in shown(rows).lower()
    assert all(math.isfinite(value) for chart in charts_of(Progress(steps)) for value in chart.values)


def test_figures_are_short_whatever_they_are() -> None:
    assert [rate_text(value) for value in (2e-4, 1.83e-5, 0, 0.4041, None, float("nan"))] == [
        "2e-4", "1.83e-5", "0", "0.404", "–", "–",
    ]  # fmt: skip
    assert [loss_text(value) for value in (1.23456, 1e9, None, float("inf"))] == ["1.235", "1.0e+09", "–", "–"]
    assert [size_text(value) for value in (20_212_345, 5_000, 3 * 10**9, None)] == ["20.2 MB", "5.0 kB", "3.0 GB", "–"]
    assert (perplexity(1.3), perplexity(1e9), perplexity(None)) == ("3.67", "–", "–")
