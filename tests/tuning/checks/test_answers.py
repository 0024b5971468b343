"""Answers that end by themselves, against the default's in the same block."""

from dataclasses import replace
from typing import Any

import pytest

from tests.tuning.checks.recorded import one, recorded
from tests.tuning.examples import random_workload, sharegpt_workload
from tuning.checks.acceptance import findings, rejects
from tuning.checks.finding import Answers, RunFacts
from tuning.checks.requests import far_answers, far_from, far_perc

TALK = sharegpt_workload(requests=300)
DEFAULT = Answers(run_id=11, seed=5, requests=300, tokens=300 * 200)


def answered(mean: float, seed: int = 5, **changes: Any) -> RunFacts:
    metrics = {**recorded().metrics, "requests_completed": 300.0, "output_tokens": 300 * mean}
    return replace(recorded(workload=TALK, metrics=metrics, seed=seed, baseline=[DEFAULT]), **changes)


def test_answers_as_long_as_the_defaults() -> None:
    assert far_answers(answered(200)) is None
    assert far_answers(answered(182)) is None


@pytest.mark.parametrize(("mean", "apart"), [(160, "-20 %"), (240, "+20 %")])
def test_far_shorter_or_longer_answers_reject(mean: float, apart: str) -> None:
    found = one(far_answers(answered(mean)))
    assert apart in found.reason
    assert "the 200 of the default in this block" in found.reason
    assert found.numbers["baseline_runs"] == [11]
    assert abs(found.numbers["apart_perc"]) > found.numbers["threshold_perc"]
    assert found.numbers["same_prompts"] is True
    assert rejects(findings(answered(mean))) == found.reason


def test_other_prompts_have_answers_of_other_lengths() -> None:
    assert far_answers(answered(160, seed=6)) is None
    assert one(far_answers(answered(100, seed=6))).numbers["same_prompts"] is False
    sampled = replace(TALK, temperature=0.7)
    assert far_answers(answered(160, workload=sampled)) is None


def test_the_run_of_the_same_prompts_is_what_counts() -> None:
    others = [replace(DEFAULT, run_id=12, seed=6, tokens=300 * 100.0), DEFAULT]
    assert far_answers(answered(200, baseline=others)) is None
    assert one(far_answers(answered(100, baseline=others))).numbers["baseline_runs"] == [11]


def test_without_the_default_nothing_is_said() -> None:
    assert far_answers(answered(20, baseline=())) is None
    assert far_answers(answered(0)) is None


def test_answers_of_a_set_length_are_not_compared() -> None:
    assert far_from(random_workload(), Answers(1, 5, 300, 300), [DEFAULT]) is None
    assert far_from(replace(TALK, ignore_eos=True), Answers(1, 5, 300, 300), [DEFAULT]) is None


def test_what_is_far_narrows_with_the_number_of_answers() -> None:
    far = [far_perc(TALK, n, n, same_prompts=True) for n in (20, 200, 2000, 200_000)]
    assert far == sorted(far, reverse=True)
    assert far[1] == pytest.approx(22)
    assert far[-1] == 5
    assert far_perc(TALK, 200, 200, same_prompts=False) == pytest.approx(44)
