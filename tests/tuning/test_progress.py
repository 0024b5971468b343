from typing import Any

import pytest

from store.records import LaunchRecord, RunRecord, SessionRecord
from tests.tuning.examples import at, launch, plan, run, session
from tuning.records import Decide, Plan
from tuning.scheduling.progress import Progress, seconds_used

PLAN = plan()  # 3 configurations, 2 blocks, 1 warm-up and 2 measured runs a launch


def progress(
    launches: list[LaunchRecord], runs: list[RunRecord], of: Plan = PLAN, now: float = 0, **changes: Any
) -> Progress:
    record: SessionRecord = session(of, **changes)
    return Progress(record, of, launches, runs, at(now))


def all_runs(block: int, candidate: int, number: int) -> list[RunRecord]:
    warmup = run(block, candidate, kind="warmup", launch_id=number)
    return [warmup, *(run(block, candidate, 100.0, repeat=repeat, launch_id=number) for repeat in (0, 1))]


def block_zero() -> tuple[list[LaunchRecord], list[RunRecord]]:
    launches = [launch(0, index, number=index, start=100 * index) for index in range(3)]
    return launches, [each for index in range(3) for each in all_runs(0, index, index)]


def test_a_session_that_has_not_begun_knows_what_it_plans() -> None:
    fresh = progress([], [])
    assert (len(fresh.cells), len(fresh.settled), fresh.blocks_done) == (6, 0, 0)
    assert (fresh.runs_made, fresh.runs_planned, fresh.seconds_left) == (0, 18, None)


def test_half_way_the_rest_is_estimated_from_what_was_seen() -> None:
    """100 s a launch of which 30 in three runs: three more launches are three times as much."""
    half = progress(*block_zero())
    assert (half.blocks_done, len(half.cells & half.settled), half.runs_made, half.runs_planned) == (1, 3, 9, 18)
    assert half.seconds_left == pytest.approx(300)


def test_within_a_launch_only_its_missing_runs_are_left() -> None:
    launches, runs = block_zero()
    launches.append(launch(1, 0, number=9, start=300, state="ready", finished_at=None))
    runs += all_runs(1, 0, 9)[:1]
    now = progress(launches, runs)
    assert (now.runs_made, now.runs_planned) == (10, 18)
    assert now.seconds_left == pytest.approx(2 * 70 + 8 * 10)


def test_before_any_launch_ended_its_start_tells() -> None:
    first = progress([launch(0, 0, state="ready", finished_at=None)], [run(0, 0, kind="warmup")])
    assert first.seconds_left == pytest.approx(5 * 40 + 17 * 10)


def test_a_second_try_is_not_another_run() -> None:
    launches, runs = block_zero()
    runs.append(run(0, 0, repeat=0, state="rejected"))
    runs.append(run(0, 0, repeat=1, state="abandoned"))
    assert progress(launches, runs).runs_made == 9


def test_a_candidate_that_left_is_launched_no_more() -> None:
    launches, runs = block_zero()
    left = progress(launches, runs, raw={"out": {"2": "skipped, as asked"}})
    assert len(left.cells) == 5
    assert left.runs_planned == 9 + 2 * 3


def test_a_failed_start_settles_its_cell_only_once_its_candidate_has_left() -> None:
    launches, runs = block_zero()
    launches += [launch(1, 1, state="failed"), launch(1, 0, state="failed")]
    tried_again = progress(launches, runs)
    assert (1, 1, 0) not in tried_again.settled
    assert (1, 0, 0) not in tried_again.settled
    left = progress(launches, runs, raw={"out": {"1": "did not start"}})
    assert (1, 1, 0) in left.settled


def test_a_block_that_has_begun_is_what_was_drawn_for_it() -> None:
    drawn = [[{"block": 0, "position": index, "candidate": index, "slot": 0} for index in (0, 1)]]
    begun = progress([], [], raw={"blocks": drawn})
    assert len(begun.cells) == 2 + 3


def test_a_session_that_is_done_has_nothing_left() -> None:
    assert progress(*block_zero(), state="done").seconds_left == 0
    launches, runs = block_zero()
    assert progress(launches, runs, of=plan(decide=Decide(blocks=1))).seconds_left == 0


def test_the_time_used_is_that_of_the_launches() -> None:
    launches = [launch(0, 0), launch(0, 1, start=500), launch(0, 2, start=700, finished_at=None)]
    assert seconds_used(launches, at(730)) == pytest.approx(230)
    assert seconds_used([launch(0, 0, started_at=None)], at(9)) == 0
    assert seconds_used([launch(0, 0, start=100, finished_at=at(50))], at(9)) == 0


def test_a_session_whose_candidates_have_all_left_has_no_further_block() -> None:
    launches, runs = block_zero()
    drawn = [[{"block": 0, "position": index, "candidate": index, "slot": 0} for index in range(3)]]
    left = progress(launches, runs, raw={"blocks": drawn, "out": {"1": "judged after block 1", "2": "judged"}})
    assert (len(left.cells), left.runs_planned, left.seconds_left) == (3, 9, 0)


def test_a_block_to_come_has_the_baseline_as_often_as_those_in_play_need() -> None:
    seven = plan(grid={"max-num-seqs": tuple(range(20, 27))}, decide=Decide(blocks=1))
    assert len(progress([], [], of=seven).cells) == 7 + 3
    assert len(progress([], [], of=seven, raw={"out": {"1": "skipped, as asked"}}).cells) == 6 + 2
