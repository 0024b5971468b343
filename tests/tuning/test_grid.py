from tests.tuning.examples import plan
from tuning.plans.grid import candidate_label, candidates
from tuning.records import Candidate, Skipped

KNOBS = {"max-num-batched-tokens": (2048, 8192), "gpu-memory-utilization": (0.9, 0.95), "max-num-seqs": (64, 256)}


def test_the_product_keeps_its_order_behind_the_baseline() -> None:
    found, skipped = candidates(plan(grid=KNOBS, server={}))
    assert found[0] == Candidate(0, "default", {})
    assert [each.index for each in found] == list(range(9))
    assert [each.label for each in found[1:4]] == ["2048 · 0.90 · 64", "2048 · 0.90 · 256", "2048 · 0.95 · 64"]
    assert found[8].settings == {
        "max-num-batched-tokens": 8192,
        "gpu-memory-utilization": 0.95,
        "max-num-seqs": 256,
    }
    assert skipped == []


def test_what_equals_the_baseline_is_left_out() -> None:
    found, skipped = candidates(plan(server={"max-num-seqs": 64, "dtype": "half"}))
    assert [each.settings for each in found] == [{}, {"max-num-seqs": 256}]
    assert skipped == [Skipped({"max-num-seqs": 64}, "the same as the baseline")]


def test_what_equals_another_point_is_left_out() -> None:
    found, skipped = candidates(plan(grid={"max-num-seqs": (64, 64.0, 32)}))
    assert [each.settings["max-num-seqs"] for each in found[1:]] == [64, 32]
    assert skipped == [Skipped({"max-num-seqs": 64.0}, "the same as candidate 1")]


def test_true_is_not_the_number_one() -> None:
    assert len(candidates(plan(grid={"x": (1, True)}))[0]) == 3


def test_fewer_batched_tokens_than_sequences_are_never_launched() -> None:
    _, skipped = candidates(plan(server={"max-num-batched-tokens": 128}))
    assert skipped == [
        Skipped({"max-num-seqs": 256}, "max-num-batched-tokens 128 is below max-num-seqs 256: vLLM refuses it")
    ]
    assert candidates(plan(grid={"max-num-batched-tokens": (64,)}, server={"max-num-seqs": 64}))[1] == []


def test_a_rule_takes_the_baseline_for_what_a_point_leaves_open() -> None:
    found, skipped = candidates(plan(skip=("dtype == 'half' and max-num-seqs > 100",), server={"dtype": "half"}))
    assert [each.settings for each in found[1:]] == [{"max-num-seqs": 64}]
    assert skipped == [Skipped({"max-num-seqs": 256}, "left out by the plan: dtype == 'half' and max-num-seqs > 100")]
    assert candidates(plan(skip=("dtype == 'half'",), server={}))[1] == []


def test_explicit_candidates_are_taken_as_they_are() -> None:
    found, _ = candidates(plan(grid={}, explicit_candidates=({"max-num-seqs": 4}, {"gpu-memory-utilization": 0.15})))
    assert [each.label for each in found] == ["default", "seqs 4", "util 0.15"]


def test_labels_are_short_and_say_what_they_mean() -> None:
    assert candidate_label({"gpu-memory-utilization": 0.125, "enforce-eager": True}) == "util 0.125 · enforce-eager on"
    assert candidate_label({"max-num-seqs": 8}, ("max-num-seqs", "dtype")) == "seqs 8"
    assert (
        candidate_label({"enable-chunked-prefill": False}, ("enable-chunked-prefill",)) == "enable-chunked-prefill off"
    )


def test_the_only_candidate_of_an_a_a_session_is_the_default_again() -> None:
    found, skipped = candidates(plan(grid=KNOBS, calibrate=True))
    assert found == [Candidate(0, "default", {}), Candidate(1, "default again", {})]
    assert skipped == []
