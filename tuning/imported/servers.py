"""Which runs were on one server, as far as the clock tells.

No vLLM server was seen to get ready in under 35 s (an eager start of a small model, without compilation or CUDA
graphs), and a load generator takes seconds too, so of two runs on one model the second of which began within 40 s of
the end of the first, no restart lies between: they are one stretch. A longer gap says nothing: the server may have
stayed, since a call of `vllm bench serve` takes half a minute and more before its load begins. `date` is written a
moment after a run.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from tuning.imported.records import ImportedRun

NO_RESTART_S = 40.0
_CLOCK_S = 2.0  # date has whole seconds


def with_stretches(runs: Sequence[ImportedRun]) -> list[ImportedRun]:
    """The runs in their order, each with the number of its stretch, whatever they are called. Runs without a date, and
    runs that overlap with the one before, begin one."""
    numbers: dict[int, int] = {}
    number = 0
    for same_model in _by_model(runs).values():
        before: datetime | None = None
        launch: str | None = None
        for index in sorted(same_model, key=lambda index: _start(runs[index])):
            run = runs[index]
            follows = (
                before is not None
                and run.started is not None
                and -_CLOCK_S <= (run.started - before).total_seconds() <= NO_RESTART_S
                and (run.launch == launch or run.launch is None or launch is None)
            )
            number += 0 if follows else 1
            numbers[index] = number
            before, launch = run.ended, run.launch
    return [replace(run, stretch=numbers[index]) for index, run in enumerate(runs)]


def overlapping(runs: Sequence[ImportedRun]) -> int:
    """How many runs of one model ran while another did."""
    found: set[int] = set()
    dated = [run for run in runs if run.started is not None and run.ended is not None]
    for same_model in _by_model(dated).values():
        ordered = sorted(same_model, key=lambda index: _start(dated[index]))
        for before, after in pairwise(ordered):
            end, start = dated[before].ended, dated[after].started
            if end is not None and start is not None and (end - start).total_seconds() > _CLOCK_S:
                found |= {before, after}
    return len(found)


def _by_model(runs: Sequence[ImportedRun]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        found.setdefault(run.model, []).append(index)
    return found


def _start(run: ImportedRun) -> datetime:
    return run.started or datetime.max
