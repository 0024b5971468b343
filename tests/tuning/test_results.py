import math
from dataclasses import replace
from typing import Any

import pytest

from store.records import LaunchRecord, RunRecord
from tests.tuning.examples import at, launch, plan, prefix_workload, random_workload, run, session
from tuning.judgement.deciding import deciding_metrics
from tuning.records import Budget, CandidateResult, Decide, Effect, Plan, SessionResult
from tuning.results import session_result
from tuning.statistics import t_quantile

PLAN = plan()


def result(
    runs: list[RunRecord], launches: list[LaunchRecord] | None = None, of: Plan = PLAN, **changes: Any
) -> SessionResult:
    return session_result(session(of, **changes), launches or [], runs, at(1000))


def one(found: SessionResult, candidate: int, workload: str = "chat") -> CandidateResult:
    (only,) = [each for each in found.results if (each.candidate.index, each.workload) == (candidate, workload)]
    return only


def test_the_runs_of_a_launch_are_averaged_before_launches_are_compared() -> None:
    """Three runs of one launch and one of another weigh the same: the launch is the sampling unit."""
    runs = [run(0, 0, value, repeat=repeat) for repeat, value in enumerate((90.0, 100.0, 110.0))]
    runs.append(run(1, 0, 120.0))
    summary = one(result(runs), 0).summaries["total_tok_per_s"]
    assert (summary.n, summary.runs, summary.mean) == (2, 4, 110.0)
    assert summary.sd == pytest.approx(math.sqrt(200))
    middle, half = math.log(100 * 120) / 2, t_quantile(0.975, 1) * math.log(120 / 100) / 2
    assert (summary.low, summary.high) == (
        pytest.approx(math.exp(middle - half)),
        pytest.approx(math.exp(middle + half)),
    )


def test_two_launches_of_the_baseline_in_a_block_are_two_launches() -> None:
    summary = one(result([run(0, 0, 90.0), run(0, 0, 110.0, slot=1)]), 0).summaries["total_tok_per_s"]
    assert (summary.n, summary.mean) == (2, 100.0)


def test_only_accepted_measured_runs_count() -> None:
    runs = [
        run(0, 0, 100.0),
        run(0, 0, 999.0, kind="warmup"),
        run(0, 0, 999.0, state="rejected"),
        run(0, 0, 999.0, state="failed"),
        run(0, 0, 999.0, state="abandoned"),
        run(0, 0, 999.0, state="running"),
        run(0, 0, 999.0, workload="other"),
    ]
    found = one(result(runs), 0)
    assert (found.summaries["total_tok_per_s"].mean, found.summaries["total_tok_per_s"].runs) == (100.0, 1)
    assert found.rejected == 1


def test_one_block_gives_an_effect_without_an_interval() -> None:
    effect = one(result([run(0, 0, 100.0), run(0, 1, 90.0)]), 1).effects["total_tok_per_s"]
    assert (effect.effect, effect.low, effect.high) == (pytest.approx(-0.1), None, None)


def test_the_baseline_and_unpaired_blocks_have_no_effect() -> None:
    found = result(
        [
            run(0, 0, metrics={"total_tok_per_s": 100.0, "duration_s": 9.0}),
            run(1, 1, metrics={"total_tok_per_s": 90.0, "duration_s": 9.0}),
        ]
    )
    assert one(found, 0).effects == {}
    assert one(found, 1).effects == {"total_tok_per_s": Effect(0, None, None, None, "undecided")}
    assert one(found, 1).summaries["total_tok_per_s"].mean == 90.0


def test_a_metric_that_can_be_zero_has_a_summary_but_no_ratio() -> None:
    runs = [run(block, index, metrics={"preemptions": 0.0}) for block in (0, 1) for index in (0, 1)]
    found = one(result(runs), 1)
    assert found.summaries["preemptions"].mean == 0
    assert "preemptions" not in found.effects


def test_metrics_that_were_never_read_are_left_out() -> None:
    assert list(one(result([run(0, 0, 1.0, metrics={"error_rate": None, "duration_s": 3.0})]), 0).summaries) == [
        "duration_s"
    ]


def test_the_confidence_is_the_plans() -> None:
    runs = [run(0, 0, 90.0), run(1, 0, 110.0)]
    loose = one(result(runs, of=plan(decide=Decide(error=0.3))), 0).summaries["total_tok_per_s"]
    middle, half = math.log(90 * 110) / 2, t_quantile(0.85, 1) * math.log(110 / 90) / 2
    assert loose.high == pytest.approx(math.exp(middle + half))


def test_workloads_are_never_mixed() -> None:
    two = plan(workloads=(random_workload(), prefix_workload()))
    found = result([run(0, 0, 100.0), run(0, 0, 300.0, workload="prefix")], of=two)
    assert [(each.candidate.index, each.workload) for each in found.results] == [
        *((index, "chat") for index in range(3)),
        *((index, "prefix") for index in range(3)),
    ]
    assert one(found, 0).summaries["total_tok_per_s"].mean == 100.0
    assert one(found, 0, "prefix").summaries["total_tok_per_s"].mean == 300.0


def test_failures_are_told_once_each() -> None:
    launches = [
        launch(0, 1, state="failed", failure="out of memory"),
        launch(1, 1, state="failed", failure="out of memory"),
        launch(0, 2, state="failed", failure_class="oom_graph"),
    ]
    found = result([], launches, raw={"out": {"1": "did not start: out of memory", "2": "skipped, as asked"}})
    assert one(found, 1).failures == ("out of memory",)
    assert one(found, 2).failures == ("oom_graph", "skipped, as asked")
    assert one(found, 0).failures == ()


def test_the_session_is_counted_and_priced() -> None:
    priced = plan(budget=Budget(gpu_price_per_hour=3.6))
    launches = [launch(0, index, number=index) for index in range(3)]
    made = [run(0, index, 1.0, repeat=repeat) for index in range(3) for repeat in (0, 1)]
    found = result(made, launches, of=priced, environment={"vllm": "0.32.0"})
    assert (found.blocks_done, found.blocks_planned) == (1, 2)
    assert (found.launches_done, found.launches_planned) == (3, 6)
    assert (found.seconds_used, found.money_used) == (pytest.approx(300), pytest.approx(0.3))
    assert (found.name, found.state, found.session_id, found.environment) == (
        "knobs",
        "running",
        14,
        {"vllm": "0.32.0"},
    )
    assert result([]).money_used is None


def test_the_keepers_own_count_of_its_time_is_not_undercut() -> None:
    launches = [launch(0, index, number=index) for index in range(3)]
    assert result([], launches, raw={"seconds_used": 450.0}).seconds_used == 450
    assert result([], launches, raw={"seconds_used": 250.0}).seconds_used == pytest.approx(300)


def test_the_deciding_metric_is_named_by_workload() -> None:
    two = plan(workloads=(random_workload(), prefix_workload()))
    assert deciding_metrics(two) == {"chat": "total_tok_per_s", "prefix": "total_tok_per_s"}
    chosen = replace(two, decide=Decide(metric={"prefix": "p99_ttft_ms"}))
    assert deciding_metrics(chosen) == {"prefix": "p99_ttft_ms"}
