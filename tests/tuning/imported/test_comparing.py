"""What may be said of two configurations, and in which words."""

import math
import random

import pytest

from tests.tuning.imported.results import a_result, report_on
from tuning.imported.records import Comparison, ImportReport

DAY = 86_400.0


def compared(report: ImportReport, metric: str = "total_tok_per_s") -> Comparison:
    (load,) = report.loads
    (found,) = [each for each in load.comparisons if each.metric == metric]
    return found


def test_one_run_each_says_nothing() -> None:
    found = compared(report_on({"base.json": [a_result(0)], "new.json": [a_result(600, speed=1.006)]}))
    assert (found.verdict, found.low, found.high) == ("says nothing", None, None)
    assert found.effect == pytest.approx(0.006)
    assert found.text == (
        "total tok/s: one run each, 0.6 % apart (+0.6 %). Nothing here shows how far two launches of one configuration "
        "lie apart, so this says nothing; measure both again after restarts"
    )


def again(speed: float) -> ImportReport:
    """One run each; and a configuration under another workload measured twice, five days and 2 % apart."""
    other = {"num_prompts": 50, "completed": 50, "failed": 0}
    return report_on(
        {
            "base.json": [a_result(0)],
            "new.json": [a_result(600, speed=speed)],
            "again.json": [a_result(1200, **other), a_result(1200 + 5 * DAY, speed=1.02, **other)],
        }
    )


def test_what_runs_of_one_configuration_differ_by_elsewhere_is_the_measure() -> None:
    (found,) = [each for load in again(1.006).loads for each in load.comparisons if each.metric == "total_tok_per_s"]
    assert found.text.endswith(
        "one run each, 0.6 % apart (+0.6 %). Runs of one configuration (model) 5 days apart differ by 2.0 %, so this "
        "says nothing"
    )
    (found,) = [each for load in again(0.9).loads for each in load.comparisons if each.metric == "total_tok_per_s"]
    assert found.verdict == "says nothing"
    assert found.text.endswith("differ by 2.0 %; this is more, but rests on one server each, and so is no proof")


def test_many_runs_on_one_server_each_are_no_launches() -> None:
    files = {
        "base.json": [a_result(12 * n, speed=1 + 0.001 * n) for n in range(4)],
        "new.json": [a_result(900 + 12 * n, speed=1.05 + 0.001 * n) for n in range(4)],
    }
    report = report_on(files)
    found = compared(report)
    assert found.verdict == "says nothing"
    assert "4 runs against 4, on one server each as far as can be told, 5.0 % apart" in found.text
    figure = report.loads[0].configurations[0].figures["total_tok_per_s"]
    assert (figure.basis, figure.units, figure.runs) == ("runs", 4, 4)
    assert figure.low is not None


SPEEDS = {"base": (1.0, 1.01, 0.995), "new": (1.08, 1.1)}


def launches(**options: object) -> ImportReport:
    files = {
        f"{name}-{launch}-{run}.json": [a_result(3600 * (launch + 10 * at) + 12 * run, speed * (1 + 0.002 * run))]
        for at, (name, speeds) in enumerate(SPEEDS.items())
        for launch, speed in enumerate(speeds)
        for run in (0, 1)
    }
    return report_on(files, names="{configuration}-{launch}-{run}", **options)


def test_launches_are_compared_by_welch_on_the_logs_of_their_means() -> None:
    from scipy.stats import ttest_ind

    found = compared(launches())
    logs = [[math.log(6400 * speed * 1.001) for speed in speeds] for speeds in SPEEDS.values()]
    exact = ttest_ind(logs[1], logs[0], equal_var=False).confidence_interval(1 - 0.05 / 3)
    assert found.low == pytest.approx(math.expm1(exact.low))
    assert found.high == pytest.approx(math.expm1(exact.high))
    assert found.reason == "2 and 3 launches"


def test_a_figure_is_over_launches_where_they_are_named() -> None:
    base = launches().loads[0].configurations[0]
    figure = base.figures["total_tok_per_s"]
    assert (base.label, figure.basis, figure.units, figure.runs) == ("base", "launches", 3, 6)


def days(speed: float) -> dict[str, list[dict[str, object]]]:
    """Four runs of each of two configurations, a day apart."""
    return {
        f"{name}-{n}-0.json": [a_result(n * DAY + at, speed=factor + 0.001 * n)]
        for name, at, factor in (("base", 0, 1.0), ("new", 3600, speed))
        for n in range(4)
    }


def test_launches_far_apart_differ_and_near_are_not_told_apart() -> None:
    names = "{configuration}-{launch}-{run}"
    assert compared(report_on(days(2.0), names=names)).verdict == "differs"
    assert "differs (4 and 4 launches)" in compared(report_on(days(2.0), names=names)).text
    assert compared(report_on(days(1.0005), names=names)).verdict == "not told apart"


def test_what_may_be_one_launch_is_never_said_to_differ() -> None:
    names = "{configuration}-*"
    found = compared(report_on(days(2.0), names=names))
    assert found.verdict == "beyond the scatter"
    assert "beyond the scatter (4 and 4 stretches, which may be of one launch)" in found.text
    assert compared(report_on(days(1.0005), names=names)).verdict == "not told apart"
    one = {name: runs for name, runs in days(2.0).items() if not name.startswith("new-") or name == "new-0-0.json"}
    assert compared(report_on(one, names="{configuration}-{launch}-{run}")).verdict == "beyond the scatter"


def test_launches_without_an_effect_seldom_differ() -> None:
    """At most one import in twenty, all metrics together; 400 imports of three launches a side."""
    luck = random.Random(5)
    wrong = 0
    for _ in range(400):
        files = {
            f"{name}-{n}-0.json": [a_result(n * DAY + at, speed=math.exp(luck.gauss(0, 0.01)))]
            for at, name in ((0, "base"), (3600, "new"))
            for n in range(3)
        }
        (load,) = report_on(files, names="{configuration}-{launch}-{run}").loads
        wrong += any(each.verdict == "differs" for each in load.comparisons)
    assert wrong <= 20


def test_one_side_alone_lends_its_scatter() -> None:
    files = {"base.json": [a_result(n * DAY, speed=1 + 0.01 * n) for n in range(4)], "new.json": [a_result(9 * DAY)]}
    found = compared(report_on(files))
    assert found.low is not None
    assert found.verdict == "not told apart"
    assert "the scatter of the side that has more" in found.text


def test_the_first_is_called_like_a_baseline_or_measured_most() -> None:
    def first(report: ImportReport) -> str:
        return report.loads[0].configurations[0].label

    assert first(report_on({"a.json": [a_result(0)], "default.json": [a_result(600)]})) == "default"
    assert first(report_on({"a.json": [a_result(0)], "b.json": [a_result(600), a_result(1200)]})) == "b"
    assert first(report_on({"b.json": [a_result(0)], "a.json": [a_result(600)]})) == "b"
    assert first(report_on({"default.json": [a_result(0, completed=9)], "a.json": [a_result(600)]})) == "a"


def test_figures_that_cannot_be_compared_are_not() -> None:
    report = report_on({"a.json": [a_result(0, mean_ttft_ms=0)], "b.json": [a_result(600, mean_itl_ms=None)]})
    assert {each.metric for each in report.loads[0].comparisons} == {"total_tok_per_s"}
    absurd = [a_result(n * DAY, mean_ttft_ms=10.0 ** (300 if n else -300)) for n in range(2)]
    assert compared(report_on({"a.json": absurd, "b.json": [a_result(600)]}), "mean_ttft_ms").low is None
