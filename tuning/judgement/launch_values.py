"""From a session's rows to what each launch says: which blocks are complete, and each launch's value of a metric."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.records import Plan
from tuning.scheduling.settling import CellKey, candidates_out, cell_of, complete_blocks
from tuning.verdict.records import LaunchValue

NO_MEASUREMENT = 1e100  # of anything: its square still is a number


@dataclass(frozen=True, slots=True)
class Blocks:
    """`complete`: the blocks, from 0, of which nothing more will come, in order; `begun`: all. `last`: the last block
    in which each configuration had a part. `positions`: the place of each cell in its block, where it is known."""

    complete: tuple[int, ...]
    begun: tuple[int, ...]
    last: Mapping[int, int]
    positions: Mapping[CellKey, int]


@dataclass(frozen=True, slots=True)
class Measured:
    """One metric in one workload. `values`: of the measured runs that count, by cell, in the order of their repeats.
    `absent`: of how many such runs it is not known."""

    values: Mapping[CellKey, tuple[float, ...]] = field(default_factory=dict)
    absent: int = 0

    def logs(self) -> dict[CellKey, list[float]]:
        """By cell; cells without a value above 0 are left out, as are the values themselves: they have no log."""
        found = {cell: [math.log(value) for value in of if value > 0] for cell, of in self.values.items()}
        return {cell: logs for cell, logs in found.items() if logs}

    def without_log(self) -> int:
        """How many runs have no value above 0."""
        return self.absent + sum(value <= 0 for of in self.values.values() for value in of)


def session_blocks(
    session: SessionRecord, plan: Plan, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]
) -> Blocks:
    """Who left before a block's launch of it came has no part in the block, though it was drawn."""
    positions = {cell_of(each): each.position for each in launches}
    drawn = {
        (cell["block"], cell["candidate"], cell["slot"]): int(cell["position"])
        for block in session.raw.get("blocks", [])
        for cell in block
    }
    out = candidates_out(session)
    last: dict[int, int] = {}
    for cell in positions.keys() | {cell for cell in drawn if cell[1] not in out}:
        last[cell[1]] = max(cell[0], last.get(cell[1], cell[0]))
    positions |= drawn
    begun = tuple(sorted({cell[0] for cell in positions}))
    return Blocks(complete_blocks(session, plan, launches, runs), begun, last, positions)


def measured(runs: Iterable[RunRecord], wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Measured]:
    """Each of `wanted`, pairs of workload and metric, from the measured runs that were accepted. One pass."""
    metrics: dict[str, list[str]] = {}
    for workload, metric in dict.fromkeys(wanted):
        metrics.setdefault(workload, []).append(metric)
    found: dict[tuple[str, str], dict[CellKey, list[tuple[int, float]]]] = {}
    absent: dict[tuple[str, str], int] = {}
    for run in runs:
        if run.kind != "measured" or run.state != "done":
            continue
        cell = cell_of(run)
        for metric in metrics.get(run.workload, ()):
            value, key = run.metrics.get(metric), (run.workload, metric)
            if value is None or not abs(value) < NO_MEASUREMENT:  # so written, NaN is none either
                absent[key] = absent.get(key, 0) + 1
            else:
                found.setdefault(key, {}).setdefault(cell, []).append((run.repeat, value))
    return {
        (workload, metric): Measured(
            {cell: tuple(value for _, value in sorted(of)) for cell, of in found.get((workload, metric), {}).items()},
            absent.get((workload, metric), 0),
        )
        for workload, of_workload in metrics.items()
        for metric in of_workload
    }


def log_values(logs: Mapping[CellKey, Sequence[float]], blocks: Blocks) -> list[LaunchValue]:
    """One value a launch of the complete blocks, the mean of its logs; in an order that does not hang on the rows'."""
    complete = set(blocks.complete)
    return [
        LaunchValue(cell[0], cell[1], math.fsum(found) / len(found), blocks.positions.get(cell))
        for cell, found in sorted(logs.items())
        if cell[0] in complete
    ]
