"""The pictures of a report: what they draw where, with numbers that are always finite."""

import math
import re
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

import tuning.reporting
from tests.tuning.reporting.examples import Measured, measured
from tuning.document import Picture
from tuning.judgement.pareto import ParetoPoint
from tuning.records import Summary
from tuning.reporting.course import Launched, course
from tuning.reporting.forest import Effected, forest
from tuning.reporting.look import look
from tuning.reporting.material import Material
from tuning.reporting.report import report_parts
from tuning.reporting.svg import element, ticks
from tuning.reporting.trade import trade


@pytest.fixture(scope="module")
def pictures() -> list[Element]:
    of: Measured = measured()
    parts = report_parts(Material(of.session, of.result, of.launches, of.runs))
    return [part.svg for part in parts if isinstance(part, Picture)]


def marks(svg: Element, kind: str) -> list[Element]:
    return [each for each in svg.iter() if kind in (each.get("class") or "").split()]


def words(svg: Element) -> str:
    return " ".join("".join(each.itertext()) for each in svg.iter("text"))


def test_every_class_has_a_look_and_a_colour_of_the_page(pictures: list[Element]) -> None:
    style = (Path(tuning.reporting.__file__).parent / "page.css").read_text(encoding="utf-8")
    found = {name for svg in pictures for each in svg.iter() for name in (each.get("class") or "").split()}
    assert {"band", "interval", "whole", "mark", "optimal", "aside", "level", "v-better"} <= found
    for name in found - {"label", "words"}:
        assert look(name), name
        assert re.search(rf"\.{name}\b", style), name


def test_all_of_a_picture_lies_within_it(pictures: list[Element]) -> None:
    assert len(pictures) == 6
    for svg in pictures:
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        for each in svg.iter():
            for name in ("x", "x1", "x2", "cx", "y", "y1", "y2", "cy"):
                if name in each.attrib:
                    assert -1 <= float(each.attrib[name]) <= (width if "x" in name else height) + 1, each.attrib


def row(label: str, effect: float, low: float | None, high: float | None) -> Effected:
    return Effected(label, effect, low, high, "undecided", "said")


def test_a_forest_keeps_its_scale_when_one_effect_is_far_off() -> None:
    near = [row("a", 0.01, -0.01, 0.03)]
    alone, beside = (
        forest("f", "tok/s", near, 0.02, True),
        forest("f", "tok/s", [*near, row("b", -0.6, -0.7, -0.5)], 0.02, True),
    )
    assert alone is not None
    assert beside is not None
    assert marks(alone, "band")[0].get("width") == marks(beside, "band")[0].get("width")
    assert [each.tag for each in marks(beside, "point")] == ["circle", "path"], "the far one is an arrow"
    assert "← worse" in words(alone)
    less = forest("f", "p99 TTFT ms", near, 0.02, False)
    assert less is not None
    assert "← better" in words(less)
    assert forest("f", "tok/s", [], 0.02, True) is None


def test_a_forest_of_one_launch_has_points_without_intervals() -> None:
    svg = forest("f", "tok/s", [row("a", 0.01, None, None)], 0.02, True)
    assert svg is not None
    assert not marks(svg, "interval")
    assert len(marks(svg, "point")) == 1


def point(label: str, throughput: float, latency: float, optimal: bool = False) -> ParetoPoint:
    wide = Summary(2, 4, throughput, 1.0, throughput / 50, throughput * 50)
    return ParetoPoint(len(label), label, wide, Summary(2, 4, latency, 1.0, latency / 50, latency * 50), optimal)


def test_intervals_of_two_launches_do_not_press_the_points_together() -> None:
    svg = trade("t", [point("a", 100, 50, True), point("bb", 120, 70, True)], "total_tok_per_s", "p99_ttft_ms")
    assert svg is not None
    first, second = (float(each.attrib["cx"]) for each in marks(svg, "mark"))
    assert second - first > 150
    assert len(marks(svg, "front")) == 1
    assert trade("t", [point("a", 1, 1)], "total_tok_per_s", "p99_ttft_ms") is None


def test_a_launch_set_aside_is_a_cross_with_its_name_and_what_was_launched_once_is_left_out() -> None:
    made = [Launched(block, 0, 0, "default", math.log(100 + block)) for block in (1, 2, 3)]
    made += [Launched(1, 1, 1, "odd", math.log(100)), Launched(2, 1, 1, "odd", math.log(85), "set aside")]
    made += [Launched(1, 2, 2, "once", math.log(70)), Launched(4, 0, 0, "default", math.log(100), "does not count")]
    svg = course("c", "tok/s", made, {1: -0.01, 2: 0.0, 3: 0.01})
    assert svg is not None
    assert len(marks(svg, "aside")) == 1
    assert "odd" in words(svg)
    assert "once" not in "".join(svg.itertext())
    assert len(marks(svg, "level")) == 3
    assert len(marks(svg, "uncounted")) == 1
    assert course("c", "tok/s", [], {}) is None


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (-0.05, 0.05, [-0.04, -0.02, 0.0, 0.02, 0.04]),
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (19_000, 29_000, [20_000, 22_000, 24_000, 26_000, 28_000]),
        (1.0, 1.0, [1.0]),
        (-math.inf, 1.0, [-math.inf]),
    ],
)
def test_ticks_are_round(low: float, high: float, found: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(found)


def test_a_number_that_is_not_finite_reaches_no_picture() -> None:
    with pytest.raises(ValueError, match="finite"):
        element("line", x1=math.nan)
