"""The looks of a sweep: who leaves after which block, when it ends, and that a resumed one decides as before."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.records import EngineError
from store.records import LaunchRecord, RunRecord, RunState, SessionRecord
from tests.tuning.sweep_world import PLAN, Metrics, World, world_of
from tuning.judged import Deciding, Judgement
from tuning.judgement.calibration import calibration
from tuning.judgement.leaving import reason_of
from tuning.records import Cell, Decide, Plan, PlannedRun
from tuning.scheduling.seeds import uniform
from tuning.sweeping.controls import Controls, Interrupted

NOISE = 0.004  # of a run: uniform between ± half of it
ONE = replace(PLAN, workloads=PLAN.workloads[:1], decide=Decide(blocks=4))
EIGHT = replace(ONE, explicit_candidates=tuple({"max-num-seqs": 2**count} for count in range(8)))


def speeds(
    world: World,
    effects: Mapping[int, float],
    noise: float = NOISE,
    prefix: Mapping[int, float] | None = None,
    prefix_noise: float | None = None,
) -> None:
    """Total tok/s of each candidate against the default, in the workload "prefix" with effects and noise of its own.
    The same draws each time a session of this seed is played."""

    def metrics(cell: Cell, run: PlannedRun) -> Metrics:
        drawn = uniform(3, cell.block, cell.candidate, cell.slot, run.workload, run.repeat) - 0.5
        other = run.workload == "prefix"
        effect = (prefix if other and prefix is not None else effects).get(cell.candidate, 0.0)
        size = prefix_noise if other and prefix_noise is not None else noise
        return {"total_tok_per_s": 1000 * (1 + effect) * (1 + size * drawn), "p99_ttft_ms": 400.0}

    world.metrics_of = metrics
    world.judge = world.judged


@contextmanager
def playing(folder: Path, plan: Plan, fixed: bool = True) -> Iterator[World]:
    folder.mkdir(exist_ok=True)
    with world_of(folder, plan, fixed=fixed) as world:
        yield world


def launches(world: World) -> Counter[tuple[int, int]]:
    """By block and candidate."""
    return Counter((block, candidate) for block, candidate, _ in world.launched)


async def test_who_is_decided_is_launched_no_more_and_the_event_says_why(tmp_path: Path) -> None:
    with playing(tmp_path, ONE) as world:
        speeds(world, {1: -0.10, 2: 0.012}, noise=0.02)
        await world.sweep(Controls()).run()
        assert {block for block, candidate in launches(world) if candidate == 1} == {0, 1}
        assert {block for block, candidate in launches(world) if candidate == 2} > {0, 1}
        why = world.session().raw["out"]["1"]
        assert reason_of(why) == "judged"
        told = next(event for event in world.events() if event.startswith("candidate 1 leaves"))
        assert "after block 2: worse, −9.7 % [−15, −3.8] total tok/s" in told
        found = world.judgement().workloads["chat"].candidates[1]
        assert (found.verdict, found.block) == ("worse", 2)


async def test_it_ends_when_no_candidate_is_left(tmp_path: Path) -> None:
    with playing(tmp_path, ONE) as world:
        speeds(world, {1: -0.10, 2: 0.10})
        sweep = world.sweep(Controls())
        await sweep.run()
        assert {block for block, _ in launches(world)} == {0, 1}
        assert "no candidate is left after 2 of 4 blocks" in world.events()
        assert world.judgement().winner == 2
        with pytest.raises(EngineError, match="has ended"):
            await sweep.add({"max-num-seqs": 64})


async def test_the_baseline_is_launched_as_often_as_those_in_play_need(tmp_path: Path) -> None:
    """Eight candidates, of which five, six and seven are left to stand: 3, 3, 2 and 1 launches of the baseline."""
    leaving = {1: (1,), 2: (2, 3, 4), 3: (5, 6, 7)}

    def scripted(done: list[LaunchRecord], runs: list[RunRecord]) -> Judgement:
        blocks = len({launch.block for launch in done})
        gone = {index: "decided" for block, indices in leaving.items() for index in indices if block <= blocks}
        return Judgement("", Deciding({}, {}), {}, leaves=gone)

    with playing(tmp_path, EIGHT) as world:
        world.judge = scripted
        await world.sweep(Controls()).run()
        made = launches(world)
        assert [made[block, 0] for block in range(4)] == [3, 3, 2, 1]
        assert [sum(count for (at, _), count in made.items() if at == block) for block in range(4)] == [11, 10, 6, 2]
        drawn = [cell for block in world.session().raw["blocks"] for cell in block if cell["candidate"] == 0]
        assert len({(cell["block"], cell["slot"]) for cell in drawn}) == 9


@pytest.mark.parametrize("kill_at", [4, 9, 14, 17])
async def test_a_session_that_was_killed_and_resumed_decides_and_goes_on_as_one_that_was_not(
    tmp_path: Path, kill_at: int
) -> None:
    effects = {1: -0.20, 2: 0.015, 3: 0.20, 4: 0.015, 5: 0.015}
    plan = replace(ONE, explicit_candidates=tuple({"max-num-seqs": 2**count} for count in range(5)))
    with playing(tmp_path / "whole", plan) as whole:
        speeds(whole, effects, noise=0.05)
        await whole.sweep(Controls()).run()
        order = [launch[:2] for launch in whole.launched]
        out, blocks = whole.session().raw["out"], whole.session().raw["blocks"]
    assert len(out) > 1
    assert len(order) > 18
    with playing(tmp_path / "killed", plan) as killed:
        speeds(killed, effects, noise=0.05)
        controls = Controls()

        def die(cell: Cell, run: PlannedRun) -> RunState:
            if len(killed.launched) == kill_at and run.kind == "measured":
                controls.stop("killed")
                controls.check()
            return "done"

        killed.state_of_run = die
        with pytest.raises(Interrupted):
            await killed.sweep(controls).run()
        killed.state_of_run = lambda cell, run: "done"
        await killed.sweep(Controls()).run()
        again = [launch[:2] for launch in killed.launched]
        assert again[:kill_at] + again[kill_at + 1 :] == order  # the launch in hand is made once more
        assert (killed.session().raw["out"], killed.session().raw["blocks"]) == (out, blocks)


async def test_killed_between_a_block_and_its_look_the_look_is_made_when_it_goes_on(tmp_path: Path) -> None:
    with playing(tmp_path, ONE) as world:
        speeds(world, {1: -0.10, 2: 0.012}, noise=0.02)

        def dies(done: list[LaunchRecord], runs: list[RunRecord]) -> Judgement:
            if len({launch.block for launch in done}) == 2:
                raise Interrupted("stop")
            return world.judged(done, runs)

        world.judge = dies
        with pytest.raises(Interrupted):
            await world.sweep(Controls()).run()
        assert "out" not in world.session().raw
        world.judge = world.judged
        await world.sweep(Controls()).run()
        assert {block for block, candidate in launches(world) if candidate == 1} == {0, 1}
        assert "judged after block 2" in world.session().raw["out"]["1"]


async def test_the_block_in_which_a_session_was_stopped_does_not_count(tmp_path: Path) -> None:
    with playing(tmp_path, ONE) as world:
        speeds(world, {1: -0.10, 2: 0.10})
        controls = Controls()

        def stop(cell: Cell) -> None:
            if len(world.launched) == 6:  # the last launch of the second block
                controls.stop("stopped, as asked")
                controls.check()

        world.before_launch = stop
        with pytest.raises(Interrupted):
            await world.sweep(controls).run()
        judged = world.judgement().workloads["chat"]
        assert judged.blocks == 1
        assert {each.verdict for each in judged.candidates.values()} == {"undecided"}
        world.before_launch = lambda cell: None
        await world.sweep(Controls()).run()
        assert world.judgement().workloads["chat"].candidates[1].verdict == "worse"


async def test_a_candidate_stays_until_it_is_decided_in_every_workload(tmp_path: Path) -> None:
    """Candidate 1 is surely worse in chat at once, and undecided a while in prefix, which is noisier."""
    with playing(tmp_path, replace(PLAN, decide=Decide(blocks=4))) as world:
        speeds(world, {1: -0.10, 2: -0.10}, prefix={1: 0.01, 2: -0.60}, prefix_noise=0.04)
        await world.sweep(Controls()).run()
        chat, prefix = (world.judgement().workloads[name].candidates for name in ("chat", "prefix"))
        assert (chat[1].verdict, chat[1].block) == ("worse", 2)
        assert prefix[2].verdict == "worse"
        assert {block for block, candidate in launches(world) if candidate == 2} == {0, 1}
        assert len({block for block, candidate in launches(world) if candidate == 1}) > 2
        told = next(event for event in world.events() if event.startswith("candidate 2 leaves"))
        assert "total tok/s in chat; worse" in told
        assert "total tok/s in prefix" in told


async def test_of_two_metrics_only_the_declared_ones_decide(tmp_path: Path) -> None:
    only = replace(PLAN, decide=Decide(metric={"prefix": "total_tok_per_s"}, blocks=2))
    with playing(tmp_path, only) as world:
        speeds(world, {}, prefix={1: -0.2, 2: -0.2})
        await world.sweep(Controls()).run()
        assert set(world.judgement().workloads) == {"prefix"}
        assert set(world.session().raw["out"]) == {"1", "2"}


async def test_a_candidate_that_breaks_a_limit_leaves(tmp_path: Path) -> None:
    limited = replace(ONE, decide=Decide(blocks=4, limits=("chat.p99_ttft_ms <= 500",)))
    with playing(tmp_path, limited) as world:
        speeds(world, {1: 0.012, 2: 0.012}, noise=0.02)
        level = world.metrics_of
        world.metrics_of = lambda cell, run: {
            **level(cell, run), "p99_ttft_ms": (900.0 if cell.candidate == 1 else 300.0) * (1 + cell.block / 100)
        }  # fmt: skip
        await world.sweep(Controls()).run()
        assert {block for block, candidate in launches(world) if candidate == 1} == {0, 1}
        assert "500" in world.session().raw["out"]["1"]
        assert world.judgement().winner != 1


async def test_a_candidate_of_which_requests_fail_twice_leaves_after_its_first_block(tmp_path: Path) -> None:
    limited = replace(ONE, decide=Decide(blocks=4, limits=("error_rate == 0",)))
    with playing(tmp_path, limited) as world:
        speeds(world, {1: 0.10, 2: 0.012}, noise=0.02)
        level = world.metrics_of
        world.metrics_of = lambda cell, run: {**level(cell, run), "error_rate": 0.2 if cell.candidate == 1 else 0.0}
        world.state_of_run = lambda cell, run: (
            "rejected" if cell.candidate == 1 and (run.kind, run.repeat) == ("measured", 1) else "done"
        )
        await world.sweep(Controls()).run()
        assert {block for block, candidate in launches(world) if candidate == 1} == {0}
        assert "error rate = 0 in chat is broken" in world.session().raw["out"]["1"]
        assert world.judgement().workloads["chat"].candidates[1].verdict == "infeasible"


async def test_the_default_against_itself_has_no_winner_and_is_measured_to_the_end(tmp_path: Path) -> None:
    with playing(tmp_path, calibration(ONE, 4)) as world:
        speeds(world, {1: 0.08})
        await world.sweep(Controls()).run()
        assert launches(world) == Counter({(block, index): 1 for block in range(4) for index in (0, 1)})
        judgement = world.judgement()
        assert judgement.winner is None
        assert judgement.workloads["chat"].noise.value_sd is not None
        assert "out" not in world.session().raw


async def test_a_candidate_that_is_added_counts_from_the_block_it_joins(tmp_path: Path) -> None:
    with playing(tmp_path, ONE) as world:
        speeds(world, {1: 0.012, 2: 0.012, 3: -0.10}, noise=0.02)
        sweep = world.sweep(Controls())
        added: list[int] = []

        async def add_in_the_second_block() -> None:
            if not added and sweep._block == 1:
                added.append(await sweep.add({"max-num-seqs": 64}))

        gate = sweep._gate

        async def gated() -> None:
            await add_in_the_second_block()
            await gate()

        sweep._gate = gated
        await sweep.run()
        assert added == [3]
        assert world.session().raw["added"] == {"3": 1}
        assert {block for block, candidate in launches(world) if candidate == 3} == {1, 2}
        found = world.judgement().workloads["chat"].candidates[3]
        assert (found.verdict, found.block) == ("worse", 3)


async def test_what_is_added_while_a_block_is_judged_joins_the_next(tmp_path: Path) -> None:
    with playing(tmp_path, replace(ONE, decide=Decide(blocks=2))) as world:
        sweep = world.sweep(Controls())
        joined: list[int] = []
        leave = sweep.leave

        async def added_meanwhile(candidate: int, why: str, level: object = "info") -> None:
            joined.append(await sweep.add({"max-num-seqs": 64}))
            await leave(candidate, why)

        world.judge = lambda done, runs: Judgement("", Deciding({}, {}), {}, leaves={1: "decided"})
        sweep._judge = world.judge
        sweep.leave = added_meanwhile  # type: ignore[method-assign]
        await sweep.run()
        assert launches(world)[1, joined[0]] == 1
        assert world.session().raw["added"] == {str(joined[0]): 1}


async def test_a_block_without_a_baseline_that_counts_has_one_more_launch_of_it(tmp_path: Path) -> None:
    with playing(tmp_path, ONE) as world:
        speeds(world, {1: -0.10, 2: -0.10})
        world.state_of_run = lambda cell, run: (
            "rejected" if (cell.block, cell.candidate, cell.slot) == (1, 0, 0) and run.kind == "measured" else "done"
        )
        await world.sweep(Controls()).run()
        assert [launches(world)[block, 0] for block in range(2)] == [1, 2]
        assert world.session().raw["blocks"][1][-1] == {"block": 1, "position": 3, "candidate": 0, "slot": 1}
        assert any("no launch of the baseline counts" in event for event in world.events())
        judged = world.judgement().workloads["chat"]
        assert judged.blocks == 2
        assert judged.candidates[1].verdict == "worse"
        assert {block for block, _ in launches(world)} == {0, 1}


async def test_a_run_that_is_rejected_later_is_made_again_before_the_look(tmp_path: Path) -> None:
    with playing(tmp_path, ONE) as world:
        speeds(world, {})
        rejected: list[int] = []

        def reject_the_first(cell: Cell) -> None:
            made = world.reader.runs(world.session_id, kind="measured")
            if not rejected and len({run.launch_id for run in made}) == 2:
                assert made[0].id is not None
                rejected.append(made[0].id)
                world.writer.update(RunRecord, made[0].id, state="rejected")

        world.before_launch = reject_the_first
        looked: list[int] = []

        def looks(done: list[LaunchRecord], runs: list[RunRecord]) -> Judgement:
            looked.append(len(done))
            return world.judged(done, runs)

        world.judge = looks
        await world.sweep(Controls()).run()
        first = world.launched[0]
        assert world.launched[3] == (first[0], first[1], 2)
        assert looked[0] == 4


async def test_a_session_of_an_earlier_version_goes_on_to_its_end(tmp_path: Path) -> None:
    """Its first block was drawn with one launch of the baseline for three candidates. What decides was not fixed when
    it began, so nobody leaves by a look."""
    plan = replace(ONE, explicit_candidates=tuple({"max-num-seqs": 2**count} for count in range(3)))
    with playing(tmp_path, plan, fixed=False) as world:
        speeds(world, {1: -0.10, 2: 0.0, 3: 0.012}, noise=0.02)
        blocks = [[{"block": 0, "position": at, "candidate": at, "slot": 0} for at in range(4)]]
        world.writer.update(SessionRecord, world.session_id, raw={"blocks": blocks})
        await world.sweep(Controls()).run()
        assert [launches(world)[block, 0] for block in range(4)] == [1, 2, 2, 2]
        assert {block for block, candidate in launches(world) if candidate == 1} == {0, 1, 2, 3}
        assert world.judgement().workloads["chat"].candidates[1].verdict == "worse"


async def test_a_plan_without_candidates_measures_its_baseline(tmp_path: Path) -> None:
    with playing(tmp_path, replace(ONE, explicit_candidates=(), decide=Decide(blocks=2))) as world:
        speeds(world, {})
        await world.sweep(Controls()).run()
        assert launches(world) == Counter({(0, 0): 1, (1, 0): 1})
