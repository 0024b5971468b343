"""What two sessions have in common, and how far it is said to lie apart."""

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.tuning.compared.measured import LEVEL, NOW, a_plan, a_session, a_side
from tests.tuning.examples import launch, random_workload
from tuning.compared.comparing import compare, side_of
from tuning.compared.records import MetricComparison, SessionComparison, Side
from tuning.compared.report import parts
from tuning.document import as_text
from tuning.records import Decide
from tuning.statistics import t_quantile


def metric_of(compared: SessionComparison, workload: int = 0, metric: int = 0) -> MetricComparison:
    return compared.workloads[workload].metrics[metric]


def later(*args: Any, **named: Any) -> Side:
    return a_side(*args, **{"id": 15, "seed": 2, "begins": 200_000, **named})


def test_a_candidate_that_gains_less_in_one_of_them_differs() -> None:
    compared = compare(a_side(effects={1: 0.03, 2: 0.0}), later(effects={1: 0.03, 2: -0.10}))
    same, other = metric_of(compared).candidates
    assert (same.label, same.word) == ("seqs 64", "not told apart")
    assert same.a.verdict == "better"
    assert (other.label, other.word) == ("seqs 256", "differs")
    assert other.a.effect.change is not None
    assert other.b.effect.change is not None
    assert other.difference.change == pytest.approx((1 + other.b.effect.change) / (1 + other.a.effect.change) - 1)
    assert other.difference.high is not None
    assert other.difference.high < 0
    assert compared.sentence.startswith("Of 2 effects measured in both, 1 differs: seqs 256 (")
    assert compared.sentence.endswith("1 is not told apart. Better than the default in both: seqs 64.")


def test_effects_of_quiet_machines_agree_although_their_levels_differ() -> None:
    quiet: dict[str, Any] = {"launch_sd": 0.001, "run_sd": 0.001}
    compared = compare(a_side(effects={1: 0.03}, **quiet), later(effects={1: 0.03}, level=1.2 * LEVEL, **quiet))
    deciding = metric_of(compared)
    assert [each.word for each in deciding.candidates] == ["agrees", "agrees"]
    assert deciding.baseline.word == "differs"
    assert deciding.baseline.difference.change == pytest.approx(0.2, abs=0.01)
    assert "2 agree within 2 %" in compared.sentence
    assert "The default's own total tok/s: +20 % [" in compared.sentence
    assert "time and machine included" in compared.sentence


def test_an_interval_within_the_margin_agrees_even_without_0() -> None:
    quiet: dict[str, Any] = {"launch_sd": 0.0005, "run_sd": 0.0}
    compared = compare(a_side(**quiet), later(effects={1: 0.01}, **quiet))
    found = metric_of(compared).candidates[0]
    assert found.difference.low is not None
    assert found.difference.low > 0
    assert found.word == "agrees"


def test_the_interval_is_that_of_two_independent_paired_differences() -> None:
    """One candidate, one launch of each a block: each effect is the paired t's, with 3 degrees; alike noisy, 6 in all.
    The levels' difference is the second of the family."""
    plan = a_plan(grid={"max-num-seqs": (64,)})
    a, b = a_side(plan), later(plan)
    deciding = metric_of(compare(a, b))

    def paired(side: Side) -> tuple[float, float]:
        logs: dict[tuple[int, int], list[float]] = {}
        for run in side.runs:
            logs.setdefault((run.block, run.candidate), []).append(math.log(run.metrics["total_tok_per_s"] or 0))
        means = {cell: sum(of) / len(of) for cell, of in logs.items()}
        apart = [means[block, 1] - means[block, 0] for block in range(4)]
        centre = sum(apart) / 4
        return centre, sum((each - centre) ** 2 for each in apart) / 3 / 4

    (centre_a, var_a), (centre_b, var_b) = paired(a), paired(b)
    df = (var_a + var_b) ** 2 / (var_a**2 / 3 + var_b**2 / 3)
    half = t_quantile(1 - 0.05 / 2 / 2, df) * math.sqrt(var_a + var_b)
    found = deciding.candidates[0].difference
    assert found.change == pytest.approx(math.expm1(centre_b - centre_a))
    assert found.low == pytest.approx(math.expm1(centre_b - centre_a - half))
    assert found.high == pytest.approx(math.expm1(centre_b - centre_a + half))


def test_the_confidence_is_spread_over_all_that_decides() -> None:
    plan = a_plan(workloads=(random_workload(), random_workload("long", requests=80)))
    compared = compare(a_side(plan), later(plan))
    assert compared.comparisons == 6  # two candidates and the default, in two workloads
    assert compared.confidence == pytest.approx(1 - 0.05 / 6)
    assert [metric.decides for metric in compared.workloads[0].metrics] == [True, False]
    assert metric_of(compared, metric=1).candidates[0].word is None


def test_launches_of_a_block_count_once_for_the_level() -> None:
    level = metric_of(compare(a_side(baseline_launches=3), later())).baseline
    assert (level.a.launches, level.a.blocks) == (12, 4)
    assert (level.b.launches, level.b.blocks) == (4, 4)


def test_with_one_block_nothing_is_said() -> None:
    compared = compare(a_side(a_plan(blocks=1)), later(a_plan(blocks=1)))
    assert {each.word for each in metric_of(compared).candidates} == {"says nothing"}
    assert metric_of(compared).baseline.word == "says nothing"
    assert metric_of(compared).candidates[0].difference.low is None
    assert "2 have too few launches to say" in compared.sentence


def test_another_model_is_not_compared_but_the_machines_are_told() -> None:
    compared = compare(a_side(), later(environment={"vllm": "0.34.0", "model_hash": "b" * 64}))
    assert compared.workloads == ()
    assert compared.sentence.startswith("Not compared: the models are not the same")
    assert compared.environment[0] == "vLLM: A 0.33.0, B 0.34.0"


def test_a_model_that_moved_is_the_same_by_its_hash_or_by_its_name() -> None:
    moved = compare(a_side(), later(a_plan(model="/mnt/elsewhere")))
    assert moved.workloads
    assert not [note for note in moved.notes if "taken for the same model" in note]
    unknown: dict[str, Any] = {"environment": {"vllm": "0.33.0"}}
    named = compare(a_side(a_plan(model="org/model"), **unknown), later(a_plan(model="/models/model"), **unknown))
    assert named.workloads
    assert [note for note in named.notes if "org/model and /models/model are taken for the same model" in note]
    assert not compare(a_side(), later(a_plan(model="/models/other"), **unknown)).workloads


def test_another_load_is_not_compared_whatever_it_is_called() -> None:
    more = a_plan(workloads=(random_workload(requests=80, request_rate=4.0),))
    compared = compare(a_side(), later(more))
    assert compared.workloads == ()
    assert compared.sentence == (
        "Not compared: workload chat: not the same load in both (request_rate: A inf, B 4.0; requests: A 40, B 80)."
    )


def test_the_same_load_of_another_name_is_found() -> None:
    renamed = a_plan(workloads=(random_workload("talk", warmup=3), random_workload("long", requests=80)))
    compared = compare(a_side(), later(renamed))
    (found,) = compared.workloads
    assert found.label == "chat (in B talk)"
    assert found.notes == ("a launch is warmed up by 1 whole runs in A, by 3 in B",)
    assert compared.refused == ("workload long: A has none like it",)


def test_a_dataset_that_lies_elsewhere_is_compared_and_said() -> None:
    here, there = (random_workload(dataset="sharegpt", path=f"/{place}/talk.json") for place in ("a", "b"))
    compared = compare(a_side(a_plan(workloads=(here,))), later(a_plan(workloads=(there,))))
    assert "whether they hold the same was not kept" in compared.workloads[0].notes[0]


def test_candidates_are_matched_by_what_they_change() -> None:
    """A names the utilization that B has in its default anyway."""
    a = a_plan(grid={}, explicit_candidates=({"max-num-seqs": 64, "max-model-len": 4096}, {"max-num-seqs": 128}))
    a = replace(a, server={"max-num-seqs": 16, "max-model-len": 4096})
    b = a_plan(grid={}, explicit_candidates=({"max-num-seqs": 256}, {"max-num-seqs": 64}), server=a.server)
    compared = compare(a_side(a), later(b))
    (found,) = metric_of(compared).candidates
    assert (found.a.candidate, found.b.candidate) == (1, 2)
    assert len(compared.only_a) == len(compared.only_b) == 1
    assert compared.defaults == ()


def test_defaults_that_are_not_the_same_server_are_told() -> None:
    secret = {"HF_TOKEN": "hf_one", "VLLM_ATTENTION_BACKEND": "X"}
    compared = compare(a_side(), later(a_plan(server={"max-num-seqs": 32}, server_env=secret)))
    assert compared.defaults == (
        "max-num-seqs: A 16, B 32",
        "environment HF_TOKEN: A not set, B ***",
        "environment VLLM_ATTENTION_BACKEND: A not set, B X",
    )
    assert [note for note in compared.notes if "against different ones" in note]


def test_a_metric_that_decides_in_one_of_them_is_compared_as_deciding() -> None:
    by_ttft = a_plan(decide=Decide(blocks=4, metric="mean_ttft_ms"))
    compared = compare(a_side(), later(by_ttft))
    assert [(each.metric, each.decides) for each in compared.workloads[0].metrics] == [
        ("total_tok_per_s", True),
        ("mean_ttft_ms", True),
    ]
    assert metric_of(compared, metric=1).candidates[0].a.shown is None  # A did not decide by it


def test_a_session_without_a_run_has_no_metric() -> None:
    empty = replace(later(), runs=())
    compared = compare(a_side(), empty)
    assert compared.sentence == "Not compared: workload chat: no metric was measured in complete blocks of both."


def test_one_session_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="agrees with itself"):
        compare(a_side(), a_side())


def test_what_cannot_be_said_is_said() -> None:
    running = later(effects={1: 0.05})
    running = replace(running, session=replace(running.session, state="running"))
    notes = " ".join(compare(a_side(effects={1: 0.05}), running).notes)
    assert "B began 2.3 days after A" in notes
    assert "cannot be told from one of the software" in notes
    assert "share the two defaults" in notes
    assert "a repeat shows less of it" in notes
    assert "B is running: this is as of 4 complete blocks." in notes
    assert "disturbed each other" in " ".join(compare(a_side(), later(begins=600)).notes)
    live = later(begins=3_000, state="running", finished_at=None)
    assert "disturbed each other" in " ".join(compare(a_side(), live).notes)


def test_a_session_that_changed_machines_says_so() -> None:
    compared = compare(a_side(), later(raw={"earlier_environments": [{"vllm": "0.32.0"}]}))
    assert [line for line in compared.environment if line.startswith("B was begun on another machine")]


def test_that_one_session_alone_was_sure_is_no_difference() -> None:
    sure = a_side(effects={1: 0.04})
    unsure = later(effects={1: 0.04}, launch_sd=0.03)
    found = metric_of(compared := compare(sure, unsure)).candidates[0]
    assert (found.a.verdict, found.b.verdict, found.word) == ("better", "undecided", "not told apart")
    assert [note for note in compared.notes if note.startswith("seqs 64: decided in one of the two")]
    assert "Better than the default in both" not in compared.sentence


def test_a_candidate_that_failed_in_one_of_them_is_told_with_its_reason() -> None:
    why = "out of memory, 0.5 GiB short"

    def without(number: int, **named: Any) -> Side:
        session, launches, runs = a_session(id=number, raw={"out": {"2": f"did not start: {why}"}}, **named)
        launches = [each for each in launches if each.candidate != 2] + [launch(0, 2, state="failed", failure=why)]
        return side_of(session, launches, [run for run in runs if run.candidate != 2], NOW)

    a, b = without(14), without(15, seed=2, begins=200_000)
    compared = compare(a_side(), b)
    assert [each.label for each in metric_of(compared).candidates] == ["seqs 64"]
    assert compared.unmeasured == (f"seqs 256 has no launch that counts in B ({why})",)
    assert compare(a, b).unmeasured == (f"seqs 256 has no launch that counts in both ({why})",)
    assert "seqs 256 has no launch" in as_text(parts(compared))
