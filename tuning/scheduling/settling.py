"""Which runs have their result: what a launch has still to make, and which blocks are complete."""

from collections.abc import Iterable, Mapping, Sequence

from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.records import Cell, Plan, PlannedRun
from tuning.scheduling.schedule import BASELINE, launch_runs

CellKey = tuple[int, int, int]  # block, candidate, slot
RUN_BREAKS = 4  # of one run: its benchmark process ended or timed out
_MeasuredRun = tuple[str, int]  # workload, repeat


def cell_of(record: LaunchRecord | RunRecord | Cell) -> CellKey:
    return record.block, record.candidate, record.slot


def settled_runs(launches: Iterable[LaunchRecord], runs: Iterable[RunRecord]) -> Mapping[CellKey, set[_MeasuredRun]]:
    """The measured runs of each cell of which nothing more will come. One pass: there may be ten thousand.

    A run that was rejected twice has had its chance, unless what broke its launch rejected it, as likely as not; nor is
    one made again that broke too often.
    """
    broken = {launch.id for launch in launches if launch.state != "done"}
    tried: dict[tuple[CellKey, _MeasuredRun], list[str]] = {}
    for run in runs:
        if run.kind == "measured" and not (run.state == "rejected" and run.launch_id in broken):
            tried.setdefault((cell_of(run), (run.workload, run.repeat)), []).append(run.state)
    found: dict[CellKey, set[_MeasuredRun]] = {}
    for (cell, run_of), states in tried.items():
        if "done" in states or states.count("rejected") >= 2 or states.count("failed") >= RUN_BREAKS:
            found.setdefault(cell, set()).add(run_of)
    return found


def missing_runs(
    plan: Plan, seed: int, cell: Cell, launches: Iterable[LaunchRecord], runs: Iterable[RunRecord]
) -> list[PlannedRun]:
    """The cell's runs without a result. A workload with any left is warmed up again: the launch will be fresh."""
    settled = settled_runs(launches, (run for run in runs if cell_of(run) == cell_of(cell))).get(cell_of(cell), set())
    planned = launch_runs(plan, seed, cell.block)
    open_workloads = {
        run.workload for run in planned if run.kind == "measured" and (run.workload, run.repeat) not in settled
    }
    return [
        run
        for run in planned
        if run.workload in open_workloads and (run.kind == "warmup" or (run.workload, run.repeat) not in settled)
    ]


def settled_cells(plan: Plan, launches: Sequence[LaunchRecord], runs: Iterable[RunRecord]) -> frozenset[CellKey]:
    """The cells whose every measured run is settled and whose server has been stopped."""
    planned = {(workload.name, repeat) for workload in plan.workloads for repeat in range(workload.repeats)}
    in_hand = {cell_of(launch) for launch in launches if launch.state in ("starting", "ready")}
    return frozenset(
        cell for cell, made in settled_runs(launches, runs).items() if cell not in in_hand and planned <= made
    )


def drawn_cells(session: SessionRecord, block: int, launched: Iterable[CellKey] = ()) -> frozenset[CellKey]:
    """The cells of a block that was drawn; for one that was not, those launched and one of each candidate in play."""
    drawn = session.raw.get("blocks", [])
    if block < len(drawn):
        return frozenset((cell["block"], cell["candidate"], cell["slot"]) for cell in drawn[block])
    left = candidates_out(session)
    in_play = {item["index"] for item in session.candidates if item["index"] not in left}
    return frozenset({(block, index, 0) for index in {BASELINE, *in_play}} | set(launched))


def candidates_out(session: SessionRecord) -> frozenset[int]:
    """Who is launched no more, for whatever reason."""
    return frozenset(int(index) for index in session.raw.get("out", {}))


def complete_blocks(
    session: SessionRecord, plan: Plan, launches: Sequence[LaunchRecord], runs: Iterable[RunRecord]
) -> tuple[int, ...]:
    """The blocks of which every cell is settled or its candidate has left: those that a verdict counts, from 0."""
    settled, left = settled_cells(plan, launches, runs), candidates_out(session)
    launched: dict[int, set[CellKey]] = {}
    for launch in launches:
        launched.setdefault(launch.block, set()).add(cell_of(launch))
    return tuple(
        block
        for block, begun in sorted(launched.items())
        if all(cell in settled or cell[1] in left for cell in drawn_cells(session, block, begun))
    )
