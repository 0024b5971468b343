"""The rules of a sweep, with a launcher that writes rows instead of starting servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.records import LaunchFailed
from store.records import RunState
from tests.tuning.sweep_world import World, world_of
from tuning.records import Cell, PlannedRun
from tuning.sweeping.controls import Controls, Interrupted
from tuning.sweeping.sweep import BaselineFailed


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_of(tmp_path) as made:
        yield made


async def test_each_block_launches_every_configuration_once_and_afresh(world: World) -> None:
    await world.sweep(Controls()).run()
    assert sorted(world.launched) == [(block, candidate, 1) for block in range(2) for candidate in range(3)]
    assert [block for block, _, _ in world.launched] == [0, 0, 0, 1, 1, 1]


async def test_the_configurations_of_a_block_meet_the_same_seeds_and_no_seed_twice(world: World) -> None:
    await world.sweep(Controls()).run()
    seeds = {
        (block, candidate): [run.seed for each, one, run in world.made if (each, one) == (block, candidate)]
        for block in range(2)
        for candidate in range(3)
    }
    for block in range(2):
        assert seeds[block, 0] == seeds[block, 1] == seeds[block, 2]
    assert len(set(seeds[0, 0] + seeds[1, 0])) == 10  # (1 + 2) + (1 + 1) runs a launch, two blocks


async def test_it_resumes_at_the_first_run_without_a_result_in_the_same_order(world: World) -> None:
    killed = Controls()

    def die_in_the_third_launch(cell: Cell, run: PlannedRun) -> RunState:
        if len(world.launched) == 3 and (run.workload, run.kind) == ("prefix", "measured"):
            killed.stop("the keeper was killed")
            killed.check()
        return "done"

    world.state_of_run = die_in_the_third_launch
    with pytest.raises(Interrupted):
        await world.sweep(killed).run()
    before = list(world.launched)
    world.state_of_run = lambda cell, run: "done"
    done_before = {
        (run.block, run.candidate, run.workload, run.repeat)
        for run in world.reader.runs(world.session_id, kind="measured")
    }
    world.made.clear()
    await world.sweep(Controls()).run()
    third = before[2]
    assert world.launched[3] == (third[0], third[1], 2)
    again = [(block, one, run.workload, run.repeat) for block, one, run in world.made if run.kind == "measured"]
    assert done_before.isdisjoint(again)
    assert len(done_before) + len(again) == 2 * 3 * 3
    # The workload that was complete is not warmed up again, the other is: its server is a new one.
    resumed = [run for block, one, run in world.made if (block, one) == third[:2]]
    assert [(run.workload, run.kind) for run in resumed] == [("prefix", "warmup"), ("prefix", "measured")]


async def test_a_candidate_that_cannot_start_leaves_and_the_sweep_goes_on(world: World) -> None:
    def too_small(cell: Cell) -> None:
        if cell.candidate == 2:
            raise LaunchFailed("the KV cache is too small", "kv_cache_too_small", 1)

    world.before_launch = too_small
    await world.sweep(Controls()).run()
    assert [launch for launch in world.launched if launch[1] == 2] == [(0, 2, 1)]
    assert len(world.launched) == 5
    assert "too small" in world.reader.session(world.session_id).raw["out"]["2"]
    assert any("did not serve" in event.text for event in world.reader.events(session_id=world.session_id))


async def test_a_failure_that_may_pass_is_tried_once_more_at_once_and_then_no_more(world: World) -> None:
    def crash(cell: Cell) -> None:
        if cell.candidate == 1:
            raise LaunchFailed("it crashed", "unknown", 1)

    world.before_launch = crash
    await world.sweep(Controls()).run()
    assert [launch for launch in world.launched if launch[1] == 1] == [(0, 1, 1), (0, 1, 2)]
    assert "it crashed" in world.reader.session(world.session_id).raw["out"]["1"]


async def test_a_failure_that_passed_costs_a_start_and_nothing_else(world: World) -> None:
    crashes = iter(range(1))

    def crash(cell: Cell) -> None:
        if cell.candidate == 1 and next(crashes, None) is not None:
            raise LaunchFailed("another still held the memory", "free_memory_short", 1)

    world.before_launch = crash
    await world.sweep(Controls()).run()
    assert [launch for launch in world.launched if launch[1] == 1] == [(0, 1, 1), (0, 1, 2), (1, 1, 1)]


async def test_a_port_that_another_took_is_no_candidates_fault(world: World) -> None:
    unlucky = iter([LaunchFailed("port 8000 is taken", "port_in_use", 1)])

    def once(cell: Cell) -> None:
        if cell.candidate == 1:
            for failure in unlucky:
                raise failure

    world.before_launch = once
    await world.sweep(Controls()).run()
    assert [launch for launch in world.launched if launch[1] == 1] == [(0, 1, 1), (0, 1, 2), (1, 1, 1)]
    assert "out" not in world.reader.session(world.session_id).raw


async def test_what_struck_from_outside_uses_up_no_start_of_a_candidate(world: World) -> None:
    """Killed twice, then a death that nobody can explain: that is its first failure of its own."""
    unlucky = iter(
        [
            LaunchFailed("ended by signal 9", "interrupted", -9),
            LaunchFailed("ended by signal 9", "interrupted", -9),
            LaunchFailed("its log does not say why", "unknown", 1),
        ]
    )

    def thrice(cell: Cell) -> None:
        if cell.candidate == 1 and (failure := next(unlucky, None)) is not None:
            raise failure

    world.before_launch = thrice
    await world.sweep(Controls()).run()
    assert [launch for launch in world.launched if launch[1] == 1] == [
        *((0, 1, attempt) for attempt in range(1, 5)), (1, 1, 1),
    ]  # fmt: skip
    assert "out" not in world.reader.session(world.session_id).raw


async def test_a_port_that_is_always_taken_is_not_tried_for_ever(world: World) -> None:
    def never(cell: Cell) -> None:
        if cell.candidate == 1:
            raise LaunchFailed("port 8000 is taken", "port_in_use", 1)

    world.before_launch = never
    await world.sweep(Controls()).run()
    assert [launch for launch in world.launched if launch[1] == 1] == [(0, 1, attempt) for attempt in range(1, 5)]


async def test_a_server_that_was_killed_while_it_served_is_started_again_in_its_block(world: World) -> None:
    kills = iter(range(2))

    def killed_in_its_run(cell: Cell, run: PlannedRun) -> RunState:
        if cell.candidate == 1 and run.kind == "measured" and next(kills, None) is not None:
            raise LaunchFailed("ended by signal 9", "host_oom", -9)
        return "done"

    world.state_of_run = killed_in_its_run
    await world.sweep(Controls()).run()
    assert [launch for launch in world.launched if launch[1] == 1] == [(0, 1, 1), (0, 1, 2), (0, 1, 3), (1, 1, 1)]
    assert world.reader.session(world.session_id).raw.get("out") is None


async def test_a_benchmark_that_was_killed_is_made_again_on_a_fresh_launch(world: World) -> None:
    kills = iter(range(2))

    def bench_dies(cell: Cell, run: PlannedRun) -> RunState:
        dies = cell.candidate == 1 and run.kind == "measured" and next(kills, None) is not None
        return "failed" if dies else "done"

    world.state_of_run = bench_dies
    await world.sweep(Controls()).run()
    done = [run for run in world.reader.runs(world.session_id, kind="measured") if run.state == "done"]
    assert len(done) == 2 * 3 * 3
    assert [launch for launch in world.launched if launch[1] == 1] == [(0, 1, 1), (0, 1, 2), (1, 1, 1)]


async def test_to_resume_gives_a_baseline_that_failed_its_chances_again(world: World) -> None:
    def never(cell: Cell) -> None:
        if cell.candidate == 0:
            raise LaunchFailed("no memory", "free_memory_short", 1)

    world.before_launch = never
    for _ in range(2):
        with pytest.raises(BaselineFailed):
            await world.sweep(Controls()).run()
    assert len([launch for launch in world.launched if launch[1] == 0]) == 4
    world.before_launch = lambda cell: None
    await world.sweep(Controls()).run()
    assert {launch[1] for launch in world.launched if launch[0] == 1} == {0, 1, 2}


async def test_the_baseline_is_started_again_at_once_and_its_second_failure_ends_the_sweep(world: World) -> None:
    failures = iter([LaunchFailed("busy", "free_memory_short", 1)])

    def once(cell: Cell) -> None:
        if cell.candidate == 0:
            for failure in failures:
                raise failure

    world.before_launch = once
    await world.sweep(Controls()).run()
    assert (0, 0, 2) in world.launched


async def test_a_baseline_that_never_starts_ends_the_sweep_with_its_reason(world: World) -> None:
    def never(cell: Cell) -> None:
        if cell.candidate == 0:
            raise LaunchFailed("no memory", "unknown", 1)

    world.before_launch = never
    with pytest.raises(BaselineFailed, match=r"nothing can be compared: no memory"):
        await world.sweep(Controls()).run()


async def test_a_run_rejected_twice_has_had_its_chance(world: World) -> None:
    world.state_of_run = lambda cell, run: "rejected" if run.workload == "prefix" else "done"
    await world.sweep(Controls()).run()
    again = [launch for launch in world.launched if launch[1] == 0]
    assert len(world.launched) - len(again) == 4
    # Its block has no launch of the baseline that counts in that workload, so it has one more, and no third.
    assert again == [(0, 0, 1), (0, 0, 1), (1, 0, 1), (1, 0, 1)]


async def test_a_candidate_can_be_added_while_it_runs(world: World) -> None:
    sweep = world.sweep(Controls())
    await sweep.add({"max-num-seqs": 2})
    await sweep.run()
    assert {(block, 3, 1) for block in range(2)} <= set(world.launched)

    late = world.sweep(Controls())  # all is done: a candidate added now is launched last in the last block
    index = await late.add({"max-num-seqs": 1})
    await late.run()
    assert world.launched[-1] == (1, index, 1)
    assert world.reader.session(world.session_id).candidates[index]["settings"] == {"max-num-seqs": 1}


async def test_a_skipped_candidate_is_cut_short_and_launched_no_more(world: World) -> None:
    controls = Controls()
    sweep = world.sweep(controls)
    skipped: list[int] = []

    def skip(cell: Cell) -> None:
        if cell.candidate == 1 and not skipped:
            skipped.append(1)
            sweep._out[1] = "skipped"
            controls.skip(1)
            controls.check()

    world.before_launch = skip
    await sweep.run()
    assert [launch for launch in world.launched if launch[1] == 1] == [(0, 1, 1)]
    assert len(world.launched) == 5
