from dataclasses import replace
from typing import Any

import pytest

from tests.tuning.examples import outcome, prefix_workload, random_workload, sharegpt_workload
from tuning.checks.acceptance import rejection
from tuning.checks.client import CLIENT_CPU_PERC, CLIENT_LAG_MS
from tuning.checks.requests import requests_sent
from tuning.records import Workload

GOOD: dict[str, float | None] = {
    "requests_completed": 40,
    "requests_failed": 0,
    "duration_s": 10.0,
    "output_tokens": 1280,
    "prefix_hit_perc": 0.5,
    "client_cpu_perc": 30.0,
    "client_lag_p99_ms": 2.0,
    "median_itl_ms": 8.0,
}
RATIO = {"input_len": 64, "output_len": 32, "range_ratio": 0.5, "prefix_len": 0}
SHARED = {"input_len": 64, "output_len": 32, "range_ratio": 0.0, "prefix_len": 192}


def reason(workload: Workload, **changes: Any) -> str | None:
    return rejection(workload, outcome({}), {**GOOD, **changes})


def test_a_sound_run_counts() -> None:
    assert reason(random_workload()) is None
    assert reason(prefix_workload(), requests_completed=39, output_tokens=39 * 16, prefix_hit_perc=70.0) is None
    assert reason(sharegpt_workload(), requests_completed=25, output_tokens=999, prefix_hit_perc=60.0) is None


@pytest.mark.parametrize(
    ("workload", "changes", "said"),
    [
        (random_workload(), {"requests_completed": None}, "no count of its requests"),
        (random_workload(), {"requests_completed": 0, "requests_failed": 40}, "no request succeeded"),
        (random_workload(), {"duration_s": 0.0}, "no duration"),
        (random_workload(), {"duration_s": None}, "no duration"),
        (random_workload(), {"requests_completed": 38, "requests_failed": 2}, "2 of 40 requests failed"),
        (random_workload(), {"requests_completed": 39, "output_tokens": 39 * 32}, "39 requests came back of 40"),
        (prefix_workload(), {"requests_completed": 38, "output_tokens": 38 * 16}, "38 requests came back of 39"),
        (sharegpt_workload(), {"requests_failed": 1}, "1 of 41 requests failed"),
        (random_workload(), {"output_tokens": 1279}, "1279 tokens were generated, 1280 were asked for"),
        (random_workload(shape=RATIO), {"output_tokens": 639}, "640 to 1920 were asked for"),
        (sharegpt_workload(ignore_eos=True, shape={"output_len": 8}), {}, "1280 tokens were generated, 320"),
        (random_workload(), {"prefix_hit_perc": 5.1}, "of which the workload explains 0 %"),
        (random_workload(shape=SHARED), {"prefix_hit_perc": 81.0}, "of which the workload explains 75 %"),
        (random_workload(), {"client_cpu_perc": CLIENT_CPU_PERC}, "load generator was saturated"),
        (random_workload(), {"client_lag_p99_ms": CLIENT_LAG_MS + 1}, "late by 51 ms"),
        (random_workload(), {"client_lag_p99_ms": 281.0, "median_itl_ms": 40.0}, "late by 281 ms"),
    ],
)
def test_what_is_no_measurement_is_rejected_in_a_line(workload: Workload, changes: dict[str, Any], said: str) -> None:
    found = reason(workload, **changes)
    assert found is not None
    assert said in found
    assert "\n" not in found


def test_a_failed_request_is_told_with_its_error() -> None:
    some = replace(outcome({"completed": 38, "failed": 2}), errors=("Bad Request",))
    assert rejection(random_workload(), some, {**GOOD, "requests_failed": 2}) == "2 of 42 requests failed: Bad Request"
    none = replace(outcome({"completed": 0, "num_prompts": 40}), errors=("Bad Request",))
    said = rejection(random_workload(), none, {**GOOD, "requests_completed": 0})
    assert said == "none of 40 requests succeeded: Bad Request"


@pytest.mark.parametrize(
    ("workload", "changes"),
    [
        (random_workload(shape=RATIO), {"output_tokens": 640}),
        (random_workload(shape=RATIO), {"output_tokens": 1920}),
        (random_workload(shape=SHARED), {"prefix_hit_perc": 79.0}),
        (random_workload(), {"prefix_hit_perc": None}),
        (random_workload(), {"client_cpu_perc": None, "client_lag_p99_ms": None}),
        (random_workload(), {"client_lag_p99_ms": 98.0, "median_itl_ms": 40.0}),
        (random_workload(), {"output_tokens": None}),
        (sharegpt_workload(ignore_eos=True), {"output_tokens": 5}),
        (prefix_workload(ignore_eos=False), {"requests_completed": 39, "output_tokens": 5}),
    ],
)
def test_what_cannot_be_held_against_a_run_is_not(workload: Workload, changes: dict[str, Any]) -> None:
    assert reason(workload, **changes) is None


def test_how_many_requests_vllm_makes() -> None:
    assert requests_sent(random_workload()) == 40
    assert requests_sent(prefix_workload()) == 39
    assert requests_sent(sharegpt_workload()) is None
