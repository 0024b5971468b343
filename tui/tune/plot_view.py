"""A metric against a parameter, as series for a chart. Pure; knows neither plotext nor widgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.text import clean
from tui.chart import MARKERS, Axes, Series, limits_of
from tui.metric_text import metric_name, metric_unit, number
from tui.tune.grid_text import DEFAULT
from tui.tune.tune_view import TuneView, setting_flags, short_flag
from tuning.plans.grid import shown_setting
from tuning.records import Candidate, CandidateResult

LAUNCHES = "launches"
"""The parameter that puts every candidate beside the others, in order of its index."""
STYLES = ("cyan", "yellow", "green", "magenta", "blue", "red", "white", "bright_black")
TICK_ROOM = 56
"""Cells that the names under an axis share, in the narrowest chart that is worth reading."""
BEYOND = 1.5
"""How far the picture reaches beyond the means, in their range: an interval of two launches may be ten times that."""
LEAST_RANGE = 0.1
"""The smallest range that is drawn, as a share of the largest mean: less looks like a difference and is none."""
DODGE = 0.08
"""How far points of different series at one value stand apart, in steps of the axis."""


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn; `legend` names each series with its mark, `note` says what is not in the picture."""

    series: tuple[Series, ...]
    axes: Axes
    legend: tuple[str, ...] = ()
    note: str = ""


def parameters(view: TuneView) -> tuple[str, ...]:
    """What may stand on the x axis: every flag that varies, then the candidates themselves."""
    return (*setting_flags(view.candidates), LAUNCHES)


def plot(view: TuneView, workload: str, metric: str, parameter: str) -> Plot:
    """The metric's mean of each candidate with its 95 % interval, against one parameter.

    Candidates that differ in other settings are series of their own; at most as many as there are marks.
    """
    results = [one for one in view.result.results if one.workload == workload]
    unit = metric_unit(metric).strip()
    y_label = f"{metric_name(metric)}{f' ({unit})' if unit else ''}, {clean(workload, 24)}: mean and 95 % interval"
    if parameter == LAUNCHES:
        return _by_candidate(results, metric, y_label)
    ticks = _ticks(results, parameter)
    groups: dict[str, list[CandidateResult]] = {}
    for one in results:
        groups.setdefault(_others(one.candidate, parameter), []).append(one)
    shown = list(groups.items())[: len(MARKERS)]
    series: list[Series] = []
    legend: list[str] = []
    for at, (name, members) in enumerate(shown):
        shift = DODGE * (at - (len(shown) - 1) / 2)
        placed = [(ticks[_tick(one.candidate, parameter)] + shift, one) for one in members]
        series += _series(placed, metric, MARKERS[at], STYLES[at], name)
        legend.append(f"{MARKERS[at]} {name or _alone(members, parameter)}")
    left = len(groups) - len(shown)
    limits, cut = _y_limits(series)
    axes = Axes(clean(parameter, 40), y_label, tuple((float(place), text) for text, place in ticks.items()), limits)
    notes = [f"{left} more combinations of the other settings are not drawn"] if left else []
    return Plot(tuple(series), axes, tuple(legend) if len(shown) > 1 else (), "; ".join([*notes, *cut]))


def _by_candidate(results: Sequence[CandidateResult], metric: str, y_label: str) -> Plot:
    placed = [(float(one.candidate.index), one) for one in results]
    room = TICK_ROOM // max(1, len(results))
    ticks = tuple((float(one.candidate.index), _short(one.candidate, room)) for one in results)
    names = [f"{one.candidate.index} {_label(one.candidate)}" for one in results if len(_label(one.candidate)) > room]
    # Candidates have no order that a line could follow.
    series = _series(placed, metric, MARKERS[0], STYLES[0], "", line=False)
    limits, cut = _y_limits(series)
    return Plot(tuple(series), Axes("candidate", y_label, ticks, limits), tuple(names), "; ".join(cut))


def _y_limits(series: Sequence[Series]) -> tuple[tuple[float, float] | None, list[str]]:
    """Limits around the means, and a note where an interval reaches beyond them: it is drawn up to the edge."""
    means = [y for one in series if one.marks for _, y in one.points if y is not None]
    if not means:
        return None, []
    reach = BEYOND * max(max(means) - min(means), LEAST_RANGE * max(map(abs, means)))
    ends = [y for one in series for _, y in one.points if y is not None]
    low, high = max(min(ends), min(means) - reach), min(max(ends), max(means) + reach)
    beyond = [number(end) for end in (min(ends), max(ends)) if not low <= end <= high]
    return limits_of((low, high)), [f"beyond the picture: intervals to {' and '.join(beyond)}"] if beyond else []


def _series(
    placed: Sequence[tuple[float, CandidateResult]],
    metric: str,
    marker: str,
    style: str,
    label: str,
    *,
    line: bool = True,
) -> list[Series]:
    """The means as one series, and each interval as a line without marks."""
    ordered = sorted(placed, key=lambda pair: pair[0])
    means: list[tuple[float | None, float | None]] = []
    intervals: list[Series] = []
    for x, one in ordered:
        summary = one.summaries.get(metric)
        if summary is None:
            continue
        means.append((x, summary.mean))
        if summary.low is not None and summary.high is not None:
            intervals.append(Series(((x, summary.low), (x, summary.high)), marks=False))
    return [*intervals, Series(tuple(means), label, marker, line=line, style=style)]


def _ticks(results: Sequence[CandidateResult], parameter: str) -> Mapping[str, int]:
    """Place of each value, the default first and numbers by size."""
    values = {_tick(one.candidate, parameter): one.candidate.settings.get(parameter) for one in results}

    def order(text: str) -> tuple[int, float, str]:
        value = values[text]
        if value is None:
            return 0, 0.0, text
        return (1, float(value), text) if isinstance(value, int | float) else (2, 0.0, text)

    return {text: place for place, text in enumerate(sorted(values, key=order))}


def _tick(candidate: Candidate, parameter: str) -> str:
    if parameter not in candidate.settings:
        return DEFAULT
    return clean(shown_setting(parameter, candidate.settings[parameter]), 12)


def _others(candidate: Candidate, parameter: str) -> str:
    words = [
        f"{short_flag(flag)} {clean(shown_setting(flag, value), 12)}"
        for flag, value in candidate.settings.items()
        if flag != parameter
    ]
    return " · ".join(words)


def _alone(members: Sequence[CandidateResult], parameter: str) -> str:
    """The series of those that set nothing beside the parameter."""
    return DEFAULT if all(one.candidate.index == 0 for one in members) else "nothing else set"


def _short(candidate: Candidate, room: int) -> str:
    """The label where it fits under its point, else the number."""
    label = _label(candidate)
    return label if len(label) <= room else str(candidate.index)


def _label(candidate: Candidate) -> str:
    return DEFAULT if candidate.index == 0 else clean(candidate.label, 30)
