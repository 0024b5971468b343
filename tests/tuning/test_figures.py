import math

import pytest

from tuning.figures import duration_text, effect_text, figure, metric_title, percent, size_percent, summary_text
from tuning.records import RUN_METRICS, Effect, Summary


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (27245.4, "27,245"),
        (640.24, "640.2"),
        (7.754, "7.75"),
        (0.01234, "0.0123"),
        (-3.25, "−3.25"),
        (40.0, "40"),
    ],
)
def test_a_figure_has_about_four_digits(value: float | None, text: str) -> None:
    assert figure(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "–"), (0.014, "+1.4 %"), (-0.29, "−29 %"), (0.00001, "0.0 %"), (-0.00001, "0.0 %"), (12.5, "+1,250 %")],
)
def test_a_ratio_has_its_sign(ratio: float | None, text: str) -> None:
    assert percent(ratio) == text


def test_an_interval_stands_behind_its_value_where_there_is_one() -> None:
    assert effect_text(Effect(2, 0.014, -0.003, 0.031)) == "+1.4 % [−0.3, +3.1]"
    assert effect_text(Effect(1, 0.014, None, None)) == "+1.4 %"
    assert effect_text(None) == "–"
    assert summary_text(Summary(2, 6, 27245.0, 10.0, 26900.2, 27590.0)) == "27,245 [26,900, 27,590]"
    assert summary_text(Summary(1, 3, 27245.0, None, None, None)) == "27,245"
    assert summary_text(None) == "–"


def test_every_metric_has_a_title_with_its_unit() -> None:
    titles = {metric_title(metric) for metric in RUN_METRICS}
    assert len(titles) == len(RUN_METRICS)
    assert metric_title("p99_ttft_ms") == "p99 TTFT ms"
    assert metric_title("something_else") == "something_else"


def test_durations_are_rounded_to_what_matters() -> None:
    texts = [duration_text(seconds) for seconds in (None, 45, 720, 7500)]
    assert texts == ["–", "45 s", "12 min", "2 h 05 min"]
    assert [duration_text(seconds) for seconds in (-3.0, float("nan"), float("inf"))] == ["0 s", "–", "–"]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0043, "0.43 %"),
        (0.036, "3.6 %"),
        (0.01, "1 %"),
        (0.0, "0 %"),
        (0.0997, "10 %"),
        (0.12, "12 %"),
        (1.04, "104 %"),
        (10.35, "1,035 %"),
    ],
)
def test_a_size_without_sign(share: float, text: str) -> None:
    assert size_percent(share) == text
    assert size_percent(None) == size_percent(math.inf) == "–"
