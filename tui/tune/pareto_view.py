"""Throughput against latency, as a chart and the lines below it. Pure; knows neither plotext nor widgets."""

import string
from dataclasses import dataclass

from engine.text import clean
from tui.chart import Axes, Series, limits_of, tick_label
from tui.metric_text import metric_name, metric_unit, metric_value
from tui.tune.tune_view import TuneView, launch_name
from tui.tune.verdict_cells import judged_candidate, limits_word, verdict_words
from tuning.judgement.pareto import LATENCIES, THROUGHPUTS, ParetoPoint, default_latency, pareto
from tuning.records import CandidateResult

LETTERS = string.ascii_uppercase + string.ascii_lowercase
BEYOND = "·"
FRONT, BEHIND = "●", "○"
TICKS = 4


@dataclass(frozen=True, slots=True)
class ParetoPlot:
    """`lines` say what each letter is: the front first, then the rest, each by latency."""

    series: tuple[Series, ...]
    axes: Axes
    lines: tuple[str, ...]


def throughputs(view: TuneView, workload: str) -> tuple[str, ...]:
    """Those that were measured, the deciding one first."""
    return _measured(view, workload, THROUGHPUTS, view.result.metric.get(workload))


def latencies(view: TuneView, workload: str) -> tuple[str, ...]:
    """Those that were measured, first that of a limit, else p99 TTFT."""
    judgement = view.result.judgement
    limits = [] if judgement is None else [one.metric for one in judgement.deciding.limits]
    return _measured(view, workload, LATENCIES, default_latency(_results(view, workload), limits))


def pareto_plot(view: TuneView, workload: str, throughput: str, latency: str) -> ParetoPlot:
    """Each configuration as a letter, those on the front joined by a line."""
    points = pareto(_results(view, workload), throughput, latency)
    letters = {one.candidate: _letter(one.candidate) for one in points}
    placed = {one.candidate: (one.latency.mean, one.throughput.mean) for one in points}
    front = Series(tuple(placed[one.candidate] for one in points if one.optimal), marks=False)
    marks = [Series((placed[one.candidate],), marker=letters[one.candidate], line=False) for one in points]
    x_limits = limits_of(one.latency.mean or 0.0 for one in points)
    step = (x_limits[1] - x_limits[0]) / (TICKS + 1)
    ticks = [x_limits[0] + step * at for at in range(1, TICKS + 1)] if points else []
    axes = Axes(
        f"{metric_name(latency)} ({metric_unit(latency).strip()})",
        f"{metric_name(throughput)}, {clean(workload, 24)}: up and left is better, the line is the front",
        tuple((tick, tick_label(tick)) for tick in ticks),
    )
    ordered = sorted(points, key=lambda one: not one.optimal)
    return ParetoPlot((front, *marks), axes, tuple(_line(view, workload, one, throughput, latency) for one in ordered))


def _line(view: TuneView, workload: str, one: ParetoPoint, throughput: str, latency: str) -> str:
    index = one.candidate
    name = clean(launch_name(view, index), 30).ljust(22)
    limits = limits_word(judged_candidate(view, workload, index))
    words = "baseline" if index == 0 else verdict_words(view, workload, index, short=True)
    values = f"{metric_value(throughput, one.throughput.mean):>9}  {metric_value(latency, one.latency.mean):>9}"
    said = ", ".join(word for word in (words, f"limits {limits}" if limits else "") if word)
    return f"{_letter(index)} {FRONT if one.optimal else BEHIND} {name} {values}  {said}".rstrip()


def _letter(index: int) -> str:
    return LETTERS[index] if index < len(LETTERS) else BEYOND


def _results(view: TuneView, workload: str) -> list[CandidateResult]:
    return [one for one in view.result.results if one.workload == workload]


def _measured(view: TuneView, workload: str, metrics: tuple[str, ...], first: str | None) -> tuple[str, ...]:
    there = {name for one in _results(view, workload) for name, each in one.summaries.items() if each.mean is not None}
    found = [name for name in metrics if name in there]
    return tuple(sorted(found, key=lambda name: name != first))
