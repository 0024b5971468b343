"""Effects of all metrics: the deciding one as its look says, the others by the same fit at the same bar."""

import math
from dataclasses import replace
from statistics import fmean

import pytest

from store.records import RunRecord
from tests.tuning.examples import at
from tests.tuning.played_sessions import Played, Truth, plan_of, play
from tuning.judgement.effects import moderated_effects
from tuning.records import Effect, SessionResult
from tuning.results import session_result
from tuning.verdict.boundary import bars
from tuning.verdict.records import Rules

METRIC = "total_tok_per_s"


def result(played: Played) -> SessionResult:
    return session_result(played.session, played.launches, played.runs, at(100_000))


def effects(found: SessionResult, candidate: int, workload: str = "chat") -> dict[str, Effect]:
    (one,) = [each for each in found.results if (each.candidate.index, each.workload) == (candidate, workload)]
    return one.effects


def test_the_deciding_metrics_effect_is_that_of_the_candidates_last_look() -> None:
    found = result(play(plan_of(3), Truth({1: 0.08}, launch_sd=0.002, run_sd=0.002)))
    assert found.judgement is not None
    for index in (1, 2, 3):
        judged = found.judgement.workloads["chat"].candidates[index]
        seen = judged.found
        assert seen is not None
        assert effects(found, index)[METRIC] == Effect(
            seen.launches, seen.effect, seen.low, seen.high, judged.verdict, seen.more_blocks
        )
    assert effects(found, 1)[METRIC].verdict == "better"
    assert found.metric == {"chat": METRIC}


def test_other_metrics_have_no_verdict_and_the_interval_of_the_same_fit() -> None:
    """One that is the deciding metric times a number has the very same effect and interval."""
    played = play(plan_of(4, blocks=3), Truth({1: 0.02}), kept=False, leaving=False)
    found = result(played)
    for index in (1, 2, 3, 4):
        decides, follows = effects(found, index)[METRIC], effects(found, index)["output_tok_per_s"]
        assert follows.verdict is None
        assert follows.effect == pytest.approx(decides.effect, abs=1e-12)
        assert follows.low == pytest.approx(decides.low)
        assert follows.high == pytest.approx(decides.high)
        assert follows.blocks == 3


def test_a_mirrored_metric_has_the_reciprocal_interval() -> None:
    found = result(play(plan_of(3, blocks=3), Truth({1: 0.02}), kept=False, leaving=False))
    rate, wait = effects(found, 1)[METRIC], effects(found, 1)["p99_ttft_ms"]
    assert rate.low is not None
    assert wait.high == pytest.approx(1 / (1 + rate.low) - 1)


def test_a_block_that_is_not_complete_counts_in_no_effect() -> None:
    played = play(plan_of(3, blocks=3), Truth({1: 0.02}), kept=False, leaving=False)
    cut = replace(
        played,
        launches=[each for each in played.launches if (each.block, each.candidate) != (2, 3)],
        runs=[each for each in played.runs if (each.block, each.candidate) != (2, 3)],
    )
    assert effects(result(cut), 1) == effects(result(played.until(2)), 1)


def test_before_a_block_is_complete_there_is_the_difference_alone() -> None:
    played = play(plan_of(2, blocks=2), Truth(launch_sd=0.01), leaving=False).until(1)
    cut = replace(
        played,
        launches=[each for each in played.launches if each.candidate != 2],
        runs=[each for each in played.runs if each.candidate != 2],
    )
    found = effects(result(cut), 1)
    own, base = (
        fmean(math.log(each.metrics[METRIC] or 0) for each in cut.runs if each.candidate == index) for index in (1, 0)
    )
    assert found[METRIC].effect == pytest.approx(math.expm1(own - base))
    assert replace(found[METRIC], effect=None) == Effect(1, None, None, None, "undecided")
    assert found["p99_ttft_ms"].low is None


def test_a_metric_with_zeros_has_no_ratio() -> None:
    def some(each: RunRecord) -> RunRecord:
        return replace(each, metrics={**each.metrics, "goodput_per_s": 0.0 if each.candidate == 1 else 5.0})

    found = result(play(plan_of(2, blocks=2), leaving=False).with_runs(some))
    assert "goodput_per_s" not in effects(found, 1)
    assert "preemptions" not in effects(found, 2)
    constant = effects(found, 2)["goodput_per_s"]
    assert (constant.effect, constant.low, constant.high) == (0.0, 0.0, 0.0)


def test_a_workload_that_decides_nothing_has_intervals_all_the_same() -> None:
    plan = plan_of(2, blocks=3, workloads=("chat", "prefix"), metric={"chat": METRIC})
    found = effects(result(play(plan, leaving=False)), 1, "prefix")[METRIC]
    assert found.verdict is None
    assert found.low is not None


def test_what_left_by_a_verdict_is_no_failure() -> None:
    found = result(play(plan_of(3), Truth({1: 0.08}, launch_sd=0.002, run_sd=0.002)))
    assert all(each.failures == () for each in found.results)


def test_the_interval_needs_two_launches_of_both() -> None:
    base = {(0, 0): [100.0], (0, 1): [101.0], (1, 0): [99.0]}
    cells = {0: base, 1: {(0, 0): [110.0], (1, 0): [111.0]}, 2: {(1, 0): [90.0]}, 3: {(7, 0): [90.0]}}
    found = moderated_effects(cells, {0, 1}, bars(Rules(3, 4))[0])
    assert set(found) == {1, 2}
    assert found[1].low is not None
    assert (found[2].low, found[2].high) == (None, None)
    assert moderated_effects(cells, {0, 1}, None)[1].low is None
    assert moderated_effects(cells, set(), 2.0) == {}
    assert moderated_effects({1: cells[1]}, {0, 1}, 2.0) == {}
