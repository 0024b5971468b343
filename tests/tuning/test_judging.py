"""Sessions with a known truth, judged from their rows."""

import math
import random
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest

from store.records import RunRecord
from tests.benchmarks.simulated_noise import Setting, draw, mixed
from tests.benchmarks.simulated_sessions import play as simulate_play
from tests.tuning.played_sessions import Truth, plan_of, play
from tuning.judged import Judgement
from tuning.judgement.judging import judge
from tuning.records import Plan
from tuning.verdict.look import latest, looks
from tuning.verdict.records import LaunchValue, Rules

METRIC = "total_tok_per_s"


def words(judgement: Judgement, workload: str = "chat") -> dict[int, str]:
    return {index: each.verdict for index, each in judgement.workloads[workload].candidates.items() if index}


def change(runs: list[RunRecord], at: tuple[int, int, int], **metrics: float | None) -> list[RunRecord]:
    """`at`: block, candidate, repeat, of the first launch of a block."""
    return [
        replace(each, metrics={**each.metrics, **metrics})
        if (each.block, each.candidate, each.repeat, each.slot) == (*at, 0)
        else each
        for each in runs
    ]


def test_what_is_better_wins_and_what_is_decided_leaves() -> None:
    played = play(plan_of(3), Truth({1: 0.08, 2: -0.1}, launch_sd=0.001, run_sd=0.001))
    found = played.judge()
    assert words(found) == {1: "better", 2: "worse", 3: "undecided"}
    assert found.winner == 1
    assert found.workloads["chat"].candidates[1].block == 2
    assert set(found.leaves) == {1, 2, 3}
    assert found.leaves[1].startswith("better, +")
    assert found.leaves[3].startswith("a worthwhile gain is implausible")
    assert found.workloads["chat"].candidates[3].why == "a gain of 2 % or more is implausible; launched no more"
    assert len(played.session.raw["blocks"]) == 2
    assert found.sentence.startswith("seqs 100 is better than the default: +")
    assert found.sentence.endswith("total tok/s; decided after block 2.")


def test_a_session_without_effects_names_nobody() -> None:
    found = play(plan_of(3, blocks=2), Truth(launch_sd=0.03), seed=5, state="done").judge()
    assert found.winner is None
    assert set(words(found).values()) == {"undecided"}
    assert found.sentence == "No candidate is shown to beat the default: 3 undecided (more than 2 blocks)."


@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_the_verdicts_own_looks_say_of_the_launches(seed: int) -> None:
    """The launch values worked out here, by `tuning.verdict.look` alone."""
    played = play(plan_of(4), Truth({1: 0.04, 2: 0.015}), seed)
    logs: dict[tuple[int, int, int], list[float]] = {}
    for each in played.runs:
        logs.setdefault((each.block, each.candidate, each.slot), []).append(math.log(each.metrics[METRIC] or 0))
    values = [LaunchValue(block, candidate, float(np.mean(of))) for (block, candidate, _), of in logs.items()]
    found = played.judge().workloads["chat"]
    for index, verdict in latest(looks(values, Rules(4, 4), {1, 2, 3, 4})).items():
        mine = found.candidates[index].found
        assert mine is not None
        assert mine.state == verdict.state
        assert mine.effect == pytest.approx(verdict.effect, abs=1e-12)
        assert mine.low == pytest.approx(verdict.low, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    truth = Truth({1: 0.05, ("prefix", 2): -0.05}, noisier={3: 4.0}, wrong={(0, 2, 0): -0.1}, p99=470)
    limits = ("chat.p99_ttft_ms <= 500", "error_rate == 0", "preemptions <= 2")
    played = play(plan_of(5, workloads=("chat", "prefix"), limits=limits), truth, seed)
    mixed = random.Random(seed)
    for _ in range(3):
        launches, runs = list(played.launches), list(played.runs)
        mixed.shuffle(launches)
        mixed.shuffle(runs)
        assert judge(played.session, played.plan, launches, runs) == played.judge()


@pytest.mark.parametrize("seed", range(8))
def test_what_was_said_after_a_block_is_said_ever_after(seed: int) -> None:
    """Blocks that come later change no earlier look, and nobody that left comes back."""
    played = play(plan_of(5, limits=("p99_ttft_ms <= 410",)), Truth({1: 0.03, 2: -0.03, 3: 0.01}), seed)
    last = played.judged[-1]
    for blocks, then in enumerate(played.judged, start=1):
        assert played.until(blocks).judge().workloads["chat"].looks == then.workloads["chat"].looks
        assert last.workloads["chat"].looks[:blocks] == then.workloads["chat"].looks
        assert set(then.leaves) <= set(last.leaves)
        for index in then.leaves:
            assert last.workloads["chat"].candidates[index] == then.workloads["chat"].candidates[index]


@pytest.mark.parametrize("value", [0.0, -5.0, None, math.nan, math.inf])
def test_a_value_without_a_log_never_reaches_the_verdict(value: float | None) -> None:
    played = play(plan_of(3), Truth({1: 0.08}), leaving=False)
    without = [each for each in played.runs if (each.block, each.candidate, each.repeat) != (1, 2, 1)]
    hurt = change(played.runs, (1, 2, 1), total_tok_per_s=value, p99_ttft_ms=value)
    # the same launches, of which this run is not one: here with the one repeat that the cell has left
    other = replace(played, runs=without).session
    found = judge(played.session, played.plan, played.launches, hurt)
    assert judge(other, one_repeat_less(played.plan), played.launches, without).workloads == found.workloads
    assert any("1 run without total tok/s above 0 is not counted" in note for note in found.notes)


def one_repeat_less(plan: Plan) -> Plan:
    return replace(plan, workloads=tuple(replace(each, repeats=1) for each in plan.workloads))


def test_a_block_without_the_default_is_told_and_left_out() -> None:
    played = play(plan_of(3, blocks=4), Truth({1: 0.08}, launch_sd=0.003), leaving=False)
    lost = played.with_runs(
        lambda each: replace(each, state="rejected") if (each.block, each.candidate) == (1, 0) else each
    )
    twice = [replace(each, id=None) for each in lost.runs if each.state == "rejected"]
    found = replace(lost, runs=[*lost.runs, *twice]).judge()
    assert found.blocks == (0, 1, 2, 3)
    assert found.workloads["chat"].blocks == len(found.workloads["chat"].looks) == 3
    assert "block 2 is not counted: no launch of the default counts there" in found.notes
    assert found.workloads["chat"].candidates[1].block == 3


def test_a_metric_that_nobody_read_is_undecided() -> None:
    played = play(plan_of(2, metric="energy_j_per_token"), leaving=False)
    found = played.judge()
    assert set(words(found).values()) == {"undecided"}
    assert found.sentence == "Nothing can be said of any candidate: no launch of the default counts."
    assert any("no launch of the default counts" in note for note in found.notes)


def test_of_a_latency_less_is_better() -> None:
    found = play(plan_of(2, metric="p99_ttft_ms"), Truth({1: 0.1, 2: -0.1}, launch_sd=0.001, run_sd=0.001)).judge()
    assert words(found) == {1: "better", 2: "worse"}
    better = found.workloads["chat"].candidates[1].found
    assert better is not None
    assert better.effect == pytest.approx(math.expm1(-0.1), abs=0.03)
    assert found.winner == 1


def test_only_complete_blocks_count() -> None:
    played = play(plan_of(3, blocks=3), Truth({1: 0.08}), leaving=False)
    cut = [each for each in played.launches if (each.block, each.candidate) != (2, 2)]
    runs = [each for each in played.runs if (each.block, each.candidate) != (2, 2)]
    found = judge(replace(played.session, state="stopped"), played.plan, cut, runs)
    assert found.blocks == (0, 1)
    assert found.workloads["chat"].looks == played.until(2).judge().workloads["chat"].looks
    assert "block 3 is not complete, and not counted for the verdict" in found.notes


def test_a_session_of_before_is_judged_by_its_newest_look() -> None:
    """Nothing was kept of what decides, and nobody left: all launches count, and nobody is told to leave."""
    truth = Truth({1: 0.08, 2: -0.1})
    played = play(plan_of(3), truth, kept=False, leaving=False, state="done")
    found = played.judge()
    assert words(found)[1] == "better"
    assert found.leaves == {}
    assert found.workloads["chat"].candidates[1].block is None
    seen = found.workloads["chat"].candidates[1].found
    assert seen is not None
    assert seen.launches == 4
    assert found.sentence.endswith("; after 4 blocks.")


def test_a_session_of_before_blocks_were_kept_is_read_from_its_launches() -> None:
    played = play(plan_of(2), Truth({1: 0.1}), kept=False, leaving=False)
    bare = replace(played, session=replace(played.session, raw={}))
    assert bare.judge().workloads["chat"].candidates == played.judge().workloads["chat"].candidates


@pytest.mark.parametrize("blocks", [14, 40])
def test_more_blocks_than_there_are_bars_are_left_out(blocks: int) -> None:
    played = play(plan_of(1, blocks=blocks), kept=False, leaving=False)
    found = played.judge()
    assert found.workloads["chat"].blocks == 13
    assert any("only the first 13 blocks" in note for note in found.notes)


def test_a_plan_without_candidates_has_nothing_to_say() -> None:
    played = play(replace(plan_of(1), grid={}), kept=False)
    assert played.judge().sentence == "Only the default was measured: there is nothing to compare it with."


def test_a_session_that_has_not_begun_says_so() -> None:
    played = play(plan_of(2, blocks=4)).until(0)
    found = played.judge()
    assert found.sentence == "Nothing can be said of any candidate: nothing is measured yet."
    assert set(words(found)) == {1, 2}


def test_one_block_decides_nothing() -> None:
    played = play(plan_of(2, blocks=4), Truth({1: 0.5}))
    assert played.until(1).judge().sentence == (
        "One block cannot tell an effect from noise; the next is the first that decides."
    )
    single = play(plan_of(2, blocks=1), Truth({1: 0.5}), state="done").judge()
    assert single.sentence == "One block cannot tell an effect from noise; a verdict takes two or more."
    assert single.leaves == {}
    found = single.workloads["chat"].candidates[1].found
    assert found is not None
    assert (found.low, found.high) == (None, None)


@dataclass(frozen=True)
class Drawn(Truth):
    """The launches that a simulated session could have."""

    launches: Any = None  # block, configuration, slot, workload: logs

    def metrics(self, seed: int, cell: tuple[int, int, int], workload: str, repeat: int) -> dict[str, float | None]:
        return {METRIC: math.exp(self.launches[(*cell, ("chat", "prefix").index(workload))])}


@pytest.mark.parametrize(("workloads", "unequal"), [(1, "no"), (1, "one"), (2, "no"), (2, "uniform")])
def test_sessions_are_judged_as_the_simulations_judge_them(
    workloads: int, unequal: Literal["no", "one", "uniform"]
) -> None:
    """Row by row the same verdicts, after the same number of launches, as what the tables of docs/verdict.md count."""
    setting = Setting("", candidates=6, workloads=workloads, unequal=unequal)
    draws = draw(setting, mixed(6), 12, np.random.default_rng(5))
    names = ("chat", "prefix")[:workloads]
    plan = plan_of(6, workloads=names)
    ended = set()
    for session in range(draws.sessions):
        rules = Rules(6, 4, workloads=workloads)
        simulated = simulate_play(draws, session, rules)
        played = play(plan, Drawn(launches=draws.launches[session]), session)
        found = played.judge()
        assert len(played.launches) == simulated.launches
        for (place, index), verdict in simulated.verdicts.items():
            mine = found.workloads[names[place]].candidates[index].found
            assert mine is not None
            assert (mine.state, mine.launches) == (verdict.state, verdict.launches)
            assert mine.low == pytest.approx(verdict.low, abs=1e-9)
            ended.add(mine.state)
    assert {"better", "implausible"} <= ended


def test_false_winners_are_rare_in_whole_sessions() -> None:
    """A coarse guard of the wiring (200 sessions): the benchmark is the fine one of the method."""
    false = sum(play(plan_of(3, blocks=3), seed=seed).judge().winner is not None for seed in range(200))
    assert false <= 10


def test_a_true_effect_is_mostly_found() -> None:
    found = [play(plan_of(3), Truth({2: 0.04}), seed=seed).judge().winner for seed in range(40)]
    assert found.count(2) >= 32
