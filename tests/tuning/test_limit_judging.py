"""Limits in whole sessions: which hold, which are broken, who waits for one, and who wins."""

from dataclasses import replace

import pytest

from store.records import RunRecord
from tests.tuning.examples import launch, run
from tests.tuning.played_sessions import Played, Truth, plan_of, play
from tuning.judged import Judgement, LimitJudgement
from tuning.judgement.leaving import JUDGED

QUIET = Truth(launch_sd=0.001, run_sd=0.001)
FAST = replace(QUIET, effects={1: 0.08})


def limits_of(found: Judgement, index: int, workload: str = "chat") -> dict[str, LimitJudgement]:
    return {each.limit.text: each for each in found.workloads[workload].candidates[index].limits}


def state(found: Judgement, index: int, text: str) -> str | None:
    verdict = limits_of(found, index)[text].verdict
    return None if verdict is None else verdict.state


def rejecting(played: Played, at: tuple[int, int, int], error_rates: list[float], then_done: bool) -> Played:
    """The run at (block, candidate, repeat) was rejected with these error rates, and done after, or not."""

    def is_it(each: RunRecord) -> bool:
        return (each.block, each.candidate, each.repeat, each.slot) == (*at, 0)

    (kept,) = [each for each in played.runs if is_it(each)]
    tries = [
        replace(kept, state="rejected", reason="2 of 40 requests failed", metrics={**kept.metrics, "error_rate": rate})
        for rate in error_rates
    ]
    rest = [each for each in played.runs if not is_it(each)]
    return replace(played, runs=[*rest, *tries, *([kept] if then_done else [])])


def test_a_winner_is_better_and_keeps_every_limit() -> None:
    found = play(plan_of(3, limits=("chat.p99_ttft_ms <= 500", "error_rate == 0")), FAST).judge()
    assert found.winner == 1
    assert state(found, 1, "chat.p99_ttft_ms <= 500") == "holds"
    assert state(found, 1, "error_rate == 0") == "holds"
    assert ", and keeps every limit; decided after block 2" in found.sentence
    one = play(plan_of(3, limits=("error_rate == 0",)), FAST).judge()
    assert ", and keeps the limit;" in one.sentence


def test_the_default_is_held_to_the_limits_too() -> None:
    found = play(plan_of(2, limits=("p99_ttft_ms <= 390",)), FAST).judge()
    assert state(found, 0, "p99_ttft_ms <= 390") == "broken"
    (note,) = [each for each in found.notes if each.startswith("the default itself")]
    assert note.startswith("the default itself breaks p99 TTFT ms ≤ 390 in chat: 4")
    assert found.workloads["chat"].candidates[0].found is None


def test_better_that_breaks_a_limit_is_infeasible() -> None:
    found = play(plan_of(2, limits=("p99_ttft_ms <= 350",)), FAST).judge()
    judged = found.workloads["chat"].candidates[1]
    assert judged.verdict == "infeasible"
    assert judged.why.startswith("p99 TTFT ms ≤ 350 in chat is broken: 370")
    assert found.winner is None
    assert found.leaves[1].startswith("p99 TTFT ms ≤ 350 in chat is broken: 370")
    assert found.sentence == "So far, no candidate is shown to beat the default within the limits: 2 infeasible."


def test_worse_stays_worse_whatever_its_limits() -> None:
    found = play(plan_of(2, limits=("p99_ttft_ms <= 350",)), replace(QUIET, effects={1: -0.08})).judge()
    assert found.workloads["chat"].candidates[1].verdict == "worse"


def test_goodput_must_reach_its_limit() -> None:
    def with_goodput(each: RunRecord) -> RunRecord:
        rate = (each.metrics["total_tok_per_s"] or 0) / 10_000
        return replace(each, metrics={**each.metrics, "goodput_per_s": rate})

    played = play(plan_of(2, limits=("goodput_per_s >= 2.1", "chat.goodput_per_s >= 1.5")), FAST, leaving=False)
    found = played.with_runs(with_goodput).judge()
    assert state(found, 1, "goodput_per_s >= 2.1") == "holds"
    assert state(found, 0, "goodput_per_s >= 2.1") == "broken"
    assert state(found, 2, "goodput_per_s >= 2.1") == "broken"
    assert state(found, 2, "chat.goodput_per_s >= 1.5") == "holds"
    verdict = limits_of(found, 1)["goodput_per_s >= 2.1"].verdict
    assert verdict is not None
    assert verdict.level is not None
    assert verdict.level == pytest.approx(2.166, abs=0.01)
    assert verdict.distance == pytest.approx(verdict.level / 2.1 - 1)
    none_reached = played.with_runs(lambda each: replace(each, metrics={**each.metrics, "goodput_per_s": 0.0})).judge()
    assert state(none_reached, 1, "chat.goodput_per_s >= 1.5") == "broken"


def test_who_may_still_win_waits_for_its_limit() -> None:
    """The metric is decided at the first look, the noisy limit is not: it is launched on, and its verdict stands."""
    truth = replace(FAST, p99=430.0)
    noisy = play(plan_of(2, blocks=5, limits=("p99_ttft_ms <= 450",)), truth, leaving=False)

    def shaken(each: RunRecord) -> RunRecord:
        factor = 1 + 0.12 * ((each.block + each.candidate) % 3 - 1)
        return replace(each, metrics={**each.metrics, "p99_ttft_ms": (each.metrics["p99_ttft_ms"] or 0) * factor})

    found = noisy.with_runs(shaken).until(2).judge()
    judged = found.workloads["chat"].candidates[1]
    assert (judged.verdict, judged.block) == ("better", 2)
    assert "p99 TTFT ms ≤ 450 in chat is undecided" in judged.why
    assert 1 not in found.leaves
    assert 2 in found.leaves
    assert found.winner is None
    assert "seqs 100 is better than the default (+" in found.sentence
    near = limits_of(found, 1)["p99_ttft_ms <= 450"].near
    assert near is not None
    assert near.endswith("% below the limit")


def test_a_limit_that_hardly_holds_makes_a_candidate_leave() -> None:
    def shaken(each: RunRecord) -> RunRecord:
        factor = 1 + 0.04 * (each.block % 2)
        return replace(each, metrics={**each.metrics, "p99_ttft_ms": 520.0 * factor})

    played = play(plan_of(3, blocks=4, limits=("p99_ttft_ms <= 500",)), Truth(launch_sd=0.03), leaving=False)
    found = played.with_runs(shaken).until(2).judge()
    judged = found.workloads["chat"].candidates[1]
    assert state(found, 1, "p99_ttft_ms <= 500") == "implausible"
    assert judged.verdict == "undecided"
    assert judged.why.startswith("that it keeps p99 TTFT ms ≤ 500 in chat is implausible: 530.3 [")
    assert judged.why.endswith("% above the limit; launched no more")
    assert 1 in found.leaves


def test_one_run_that_was_rejected_is_no_broken_limit() -> None:
    played = play(plan_of(2, limits=("error_rate == 0",)), FAST, leaving=False)
    assert state(rejecting(played, (0, 1, 0), [0.05], True).judge(), 1, "error_rate == 0") == "holds"


def test_a_second_rejection_breaks_it_at_once() -> None:
    """After the first block already: what must never happen has happened."""
    played = play(plan_of(2, limits=("error_rate == 0",)), FAST, leaving=False).until(1)
    found = rejecting(played, (0, 1, 0), [0.05, 0.1], False).judge()
    judged = found.workloads["chat"].candidates[1]
    assert (judged.verdict, judged.block) == ("infeasible", 1)
    assert judged.why == "error rate = 0 in chat is broken: 0.05"
    assert set(found.leaves) == {1}


def test_rejections_for_other_reasons_break_no_limit() -> None:
    played = play(plan_of(2, limits=("error_rate == 0",)), FAST, leaving=False)
    assert state(rejecting(played, (0, 1, 0), [0.0, 0.0], False).judge(), 1, "error_rate == 0") == "holds"


def test_a_limit_above_zero_on_failed_requests_counts_the_rejected() -> None:
    """Runs that count have no failed requests; those of which they failed twice tell."""
    played = play(plan_of(2, limits=("error_rate <= 0.02",)), FAST, leaving=False)
    assert state(rejecting(played, (0, 1, 0), [0.01, 0.01], False).judge(), 1, "error_rate <= 0.02") == "holds"
    found = rejecting(played, (0, 1, 0), [0.01, 0.05], True).judge()
    assert state(found, 1, "error_rate <= 0.02") == "holds"
    broken = rejecting(played, (0, 1, 0), [0.04, 0.05], False).judge()
    assert state(broken, 1, "error_rate <= 0.02") == "broken"


def test_what_broke_the_launch_breaks_no_limit() -> None:
    played = play(plan_of(2, limits=("error_rate == 0",)), FAST, leaving=False)
    (first,) = [each for each in played.launches if (each.block, each.candidate) == (0, 1)]
    struck = replace(launch(0, 1, number=999, position=first.position), state="abandoned")
    tries = [
        run(0, 1, launch_id=999, repeat=0, state="rejected", metrics={"total_tok_per_s": 1.0, "error_rate": 0.5})
        for _ in range(2)
    ]
    hit = replace(played, launches=[*played.launches, struck], runs=[*played.runs, *tries])
    assert state(hit.judge(), 1, "error_rate == 0") == "holds"


def test_preemptions_that_must_not_be_are_seen_in_runs_that_count() -> None:
    def once(each: RunRecord) -> RunRecord:
        hit = (each.block, each.candidate, each.repeat) == (1, 1, 0)
        return replace(each, metrics={**each.metrics, "preemptions": 3.0 if hit else 0.0})

    played = play(plan_of(2, limits=("preemptions == 0",)), FAST, leaving=False).with_runs(once)
    assert state(played.until(1).judge(), 1, "preemptions == 0") == "holds"
    assert state(played.judge(), 1, "preemptions == 0") == "broken"


def test_what_was_not_measured_is_not_kept() -> None:
    played = play(plan_of(2, limits=("goodput_per_s >= 1",)), FAST, leaving=False)
    found = played.judge()
    assert state(found, 1, "goodput_per_s >= 1") is None
    assert found.winner is None
    assert "goodput requests/s ≥ 1 in chat was not measured" in found.sentence
    assert 1 in found.leaves


def test_a_limit_in_a_workload_that_decides_nothing_counts() -> None:
    plan = plan_of(2, workloads=("chat", "prefix"), metric={"chat": "total_tok_per_s"}, limits=("p99_ttft_ms <= 385",))

    def slow(each: RunRecord) -> RunRecord:
        wait = 500.0 if each.workload == "prefix" else 300.0
        return replace(each, metrics={**each.metrics, "p99_ttft_ms": wait + each.block + each.candidate})

    found = play(plan, FAST, leaving=False).with_runs(slow).judge()
    assert list(found.workloads) == ["chat"]
    judged = found.workloads["chat"].candidates[1]
    assert [(each.workload, each.verdict.state if each.verdict else None) for each in judged.limits] == [
        ("chat", "holds"),
        ("prefix", "broken"),
    ]
    assert judged.verdict == "infeasible"


@pytest.mark.parametrize("value", [None, 0.0, -3.0])
def test_hostile_values_break_nothing(value: float | None) -> None:
    limits = ("p99_ttft_ms <= 500", "preemptions <= 5", "goodput_per_s >= 1")
    names = ("total_tok_per_s", "p99_ttft_ms", "preemptions", "goodput_per_s")
    played = play(plan_of(2, limits=limits), QUIET, leaving=False)
    assert played.with_runs(lambda each: replace(each, metrics=dict.fromkeys(names, value))).judge().winner is None


def test_numbers_of_any_size_are_judged() -> None:
    """Their interval reaches beyond any float: no number is shown in its place, and nothing is decided by it."""

    def wild(each: RunRecord) -> RunRecord:
        value = 1e90 if each.block % 2 else 1e-300
        return replace(each, metrics={"total_tok_per_s": value, "p99_ttft_ms": value})

    found = play(plan_of(2, limits=("p99_ttft_ms <= 500",)), QUIET, leaving=False).with_runs(wild).judge()
    verdict = limits_of(found, 1)["p99_ttft_ms <= 500"].verdict
    assert verdict is not None
    assert verdict.state == "undecided"
    assert verdict.high is None


def test_a_limit_that_earlier_versions_read_is_named() -> None:
    plan = plan_of(2, limits=("p99_ttft_ms == 500", "error_rate == 0"))
    found = play(plan, FAST).judge()
    assert [limit.text for limit in found.deciding.limits] == ["error_rate == 0"]
    assert "the limit p99_ttft_ms == 500 cannot be judged, and is not" in found.notes


def test_the_reason_is_kept_for_those_who_left() -> None:
    """Levels of those that left stay as they were when they left."""
    played = play(plan_of(3, limits=("p99_ttft_ms <= 390",)), replace(FAST, launch_sd=0.004), seed=3)
    first, last = played.judged[1], played.judge()
    assert set(first.leaves) <= set(last.leaves)
    for index in first.leaves:
        assert limits_of(last, index) == limits_of(first, index)
        assert played.session.raw["out"][str(index)] == f"{JUDGED}: {first.leaves[index]}"
