"""The figures of one configuration: means with intervals over what may be taken for independent.

The unit is the launch. Where nothing names launches, runs that follow each other too fast for a restart (a stretch) are
taken as one: two stretches may still be one launch, so their interval may be too narrow, and the report says so. Where
all runs lie in one, the interval is over the runs, and says how they scatter on one server, no more.
"""

from collections.abc import Sequence
from datetime import datetime

from tuning.imported.records import Basis, Configuration, Figure, ImportedRun
from tuning.records import RUN_METRICS
from tuning.statistics import level_interval, mean

# Counts of a run, of which a mean says nothing.
_NO_FIGURES = frozenset({"requests_completed", "requests_failed", "input_tokens", "output_tokens", "error_rate"})


def configuration(label: str, runs: Sequence[ImportedRun]) -> Configuration:
    """The runs of one configuration, with their figures."""
    units, basis = _units(runs)
    figures = {
        metric: found
        for metric in RUN_METRICS
        if metric not in _NO_FIGURES and (found := figure_of(metric, units, basis)) is not None
    }
    starts = [run.started for unit in units for run in unit if run.started is not None]
    span = (max(starts) - min(starts)).total_seconds() if len(starts) > 1 else None
    return Configuration(label, tuple(runs), units, basis, figures, span)


def figure_of(metric: str, units: Sequence[Sequence[ImportedRun]], basis: Basis) -> Figure | None:
    """One metric over the units, None where no run has it."""
    found = [
        values for unit in units if (values := [value for run in unit if (value := run.metrics[metric]) is not None])
    ]
    if not found:
        return None
    runs = sum(map(len, found))
    values = [mean(each) for each in found]
    if len(values) == 1:
        values, basis = found[0], "runs"
    interval = level_interval(values)
    return Figure(runs, len(values), interval.mean, interval.low, interval.high, basis, tuple(values))


def _units(runs: Sequence[ImportedRun]) -> tuple[tuple[tuple[ImportedRun, ...], ...], Basis]:
    counting = sorted((run for run in runs if run.counts), key=lambda run: run.started or datetime.max)
    units: dict[str, list[ImportedRun]] = {}
    for run in counting:
        units.setdefault(run.launch or f"stretch {run.stretch}", []).append(run)
    named = all(run.launch is not None for run in counting)
    basis: Basis = "runs" if len(units) < 2 else "launches" if named else "stretches"
    return tuple(tuple(unit) for unit in units.values()), basis
