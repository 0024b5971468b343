"""From a session's rows to what each launch says: which blocks are complete, and each launch's log of a metric."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.verdict.records import LaunchValue

Cell = tuple[int, int, int]  # block, candidate, slot
Logs = Mapping[Cell, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Blocks:
    """`complete`: the blocks, from 0, of which nothing more will come, in order. `last`: the last block that each
    candidate was drawn for. `positions`: the place of each cell in its block, where it is known."""

    complete: tuple[int, ...]
    open: tuple[int, ...]
    last: Mapping[int, int]
    positions: Mapping[Cell, int]


@dataclass(frozen=True, slots=True)
class Measured:
    """The logs of one metric in one workload, by cell; `unusable` counts runs by cell whose value has no log."""

    logs: Logs
    unusable: Mapping[Cell, int] = field(default_factory=dict)


def session_blocks(session: SessionRecord, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]) -> Blocks:
    """A block is complete when every cell drawn for it is settled: launched to the end, or its candidate has left.

    Of sessions that keep no order of their blocks the cells are those that were launched, or have runs.
    """
    drawn = session.raw.get("blocks")
    positions: dict[Cell, int] = {}
    if drawn:
        for block in drawn:
            for cell in block:
                positions[cell["block"], cell["candidate"], cell["slot"]] = cell["position"]
    else:
        positions |= {(each.block, each.candidate, each.slot): each.position for each in launches}
    cells = set(positions)
    if not drawn:
        cells |= {(run.block, run.candidate, run.slot) for run in runs}
    out = {int(index) for index in session.raw.get("out", {})}
    launched = {(each.block, each.candidate, each.slot) for each in launches}
    done = {(each.block, each.candidate, each.slot) for each in launches if each.state == "done"}
    if not drawn:
        done |= cells - launched
    last: dict[int, int] = {}
    waiting: set[int] = set()
    for cell in cells:
        block, candidate, _ = cell
        if candidate not in out or cell in launched or cell in done:
            last[candidate] = max(block, last.get(candidate, -1))
        if cell not in done and candidate not in out:
            waiting.add(block)
    blocks = {cell[0] for cell in cells}
    return Blocks(tuple(sorted(blocks - waiting)), tuple(sorted(waiting)), last, positions)


def measured_logs(runs: Sequence[RunRecord], wanted: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], Measured]:
    """(workload, metric) → the logs of the measured runs that count. `wanted`: workload → metrics."""
    logs: dict[tuple[str, str], dict[Cell, list[tuple[int, float]]]] = {}
    unusable: dict[tuple[str, str], dict[Cell, int]] = {}
    keys = {workload: [(metric, (workload, metric)) for metric in dict.fromkeys(of)] for workload, of in wanted.items()}
    for of in keys.values():
        for _, key in of:
            logs[key], unusable[key] = {}, {}
    for run in runs:
        if run.kind != "measured" or run.state != "done" or run.workload not in keys:
            continue
        cell = run.block, run.candidate, run.slot
        for metric, key in keys[run.workload]:
            value = run.metrics.get(metric)
            if value is not None and 0 < value < math.inf:
                logs[key].setdefault(cell, []).append((run.repeat, math.log(value)))
            else:
                unusable[key][cell] = unusable[key].get(cell, 0) + 1
    return {
        key: Measured({cell: [log for _, log in sorted(found)] for cell, found in by_cell.items()}, unusable[key])
        for key, by_cell in logs.items()
    }


def launch_values(logs: Logs, blocks: Blocks) -> list[LaunchValue]:
    """One value a launch of the complete blocks, the mean of its logs; in an order that does not hang on the rows'."""
    complete = set(blocks.complete)
    return [
        LaunchValue(cell[0], cell[1], math.fsum(found) / len(found), blocks.positions.get(cell))
        for cell, found in sorted(logs.items())
        if cell[0] in complete and found
    ]
