"""What may be said of two configurations, and in which words."""

import math

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


def test_far_apart_differs_and_near_is_not_told_apart() -> None:
    def files(speed: float) -> dict[str, list[dict[str, object]]]:
        return {
            "base.json": [a_result(n * DAY, speed=1 + 0.001 * n) for n in range(4)],
            "new.json": [a_result(n * DAY + 3600, speed=speed + 0.001 * n) for n in range(4)],
        }

    assert compared(report_on(files(2.0))).verdict == "differs"
    assert "more than the scatter seen here (4 and 4 stretches)" in compared(report_on(files(2.0))).text
    assert compared(report_on(files(1.0005))).verdict == "not told apart"


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
