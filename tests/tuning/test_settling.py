"""Which runs and blocks are over."""

from typing import Any

from store.records import LaunchRecord, RunRecord
from tests.tuning.examples import launch, plan, run, session
from tuning.records import Cell
from tuning.scheduling.settling import complete_blocks, missing_runs, settled_cells

PLAN = plan()  # three configurations, one warm-up and two measured runs a launch
CELL = Cell(0, 0, 1, 0)


def made(*states: str, repeat: int = 0, number: int = 1) -> list[RunRecord]:
    return [run(0, 1, 1.0, repeat=repeat, state=state, launch_id=number) for state in states]


def missing(runs: list[RunRecord], launches: list[LaunchRecord] | None = None) -> list[tuple[str, int]]:
    launches = [launch(0, 1, number=1)] if launches is None else launches
    return [(each.kind, each.repeat) for each in missing_runs(PLAN, 7, CELL, launches, runs)]


def test_what_is_missing_is_made_after_a_warm_up() -> None:
    assert missing([], []) == [("warmup", 0), ("measured", 0), ("measured", 1)]
    assert missing(made("done")) == [("warmup", 0), ("measured", 1)]
    assert missing(made("done") + made("done", repeat=1)) == []


def test_a_run_that_was_rejected_once_or_cut_short_is_missing() -> None:
    whole = made("done", repeat=1)
    for states in (["rejected"], ["abandoned"], ["failed"] * 3, ["running"], ["rejected", "failed"]):
        assert missing(whole + made(*states)) == [("warmup", 0), ("measured", 0)], states
    for states in (["rejected", "done"], ["rejected"] * 2, ["failed"] * 4):
        assert missing(whole + made(*states)) == [], states


def test_what_was_rejected_on_a_launch_that_broke_says_nothing_of_the_run() -> None:
    broke = [launch(0, 1, number=1, state="failed"), launch(0, 1, number=2)]
    runs = made("done", repeat=1) + made("rejected", "rejected")
    assert missing(runs, broke) == [("warmup", 0), ("measured", 0)]
    assert missing(runs + made("rejected", "rejected", number=2), broke) == []


def whole_block(block: int, **changes: Any) -> tuple[list[LaunchRecord], list[RunRecord]]:
    launches = [launch(block, index, number=10 * block + index) for index in range(3)]
    runs = [
        run(block, index, 1.0, repeat=repeat, launch_id=10 * block + index) for index in range(3) for repeat in (0, 1)
    ]
    return launches, runs


def test_a_cell_is_settled_once_its_server_is_gone() -> None:
    launches, runs = whole_block(0)
    assert settled_cells(PLAN, launches, runs) == {(0, 0, 0), (0, 1, 0), (0, 2, 0)}
    launches[2] = launch(0, 2, number=2, state="ready")
    assert settled_cells(PLAN, launches, runs) == {(0, 0, 0), (0, 1, 0)}


def test_a_block_is_complete_when_every_cell_is_settled_or_given_up() -> None:
    launches, runs = whole_block(0)
    drawn = [[{"block": 0, "position": at, "candidate": at, "slot": 0} for at in range(3)]]
    assert complete_blocks(session(PLAN, raw={"blocks": drawn}), PLAN, launches, runs) == (0,)
    assert complete_blocks(session(PLAN, raw={"blocks": drawn}), PLAN, launches, runs[:-1]) == ()
    assert complete_blocks(session(PLAN, raw={"blocks": drawn}), PLAN, launches[:-1], runs[:-2]) == ()
    left = session(PLAN, raw={"blocks": drawn, "out": {"2": "did not start"}})
    assert complete_blocks(left, PLAN, launches[:-1], runs[:-2]) == (0,)


def test_a_second_launch_of_the_baseline_is_part_of_its_block() -> None:
    launches, runs = whole_block(0)
    drawn = [[{"block": 0, "position": at, "candidate": at % 3, "slot": at // 3} for at in range(4)]]
    of = session(PLAN, raw={"blocks": drawn})
    assert complete_blocks(of, PLAN, launches, runs) == ()
    launches.append(launch(0, 0, number=9, slot=1))
    runs += [run(0, 0, 1.0, repeat=repeat, slot=1, launch_id=9) for repeat in (0, 1)]
    assert complete_blocks(of, PLAN, launches, runs) == (0,)


def test_of_a_block_whose_draw_was_not_kept_everybody_in_play_is_wanted() -> None:
    launches, runs = whole_block(0)
    assert complete_blocks(session(PLAN), PLAN, launches, runs) == (0,)
    assert complete_blocks(session(PLAN), PLAN, launches[:-1], runs[:-2]) == ()
    assert complete_blocks(session(PLAN), PLAN, [], []) == ()
