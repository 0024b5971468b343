"""Results of every age as runs."""

import json
from datetime import datetime
from typing import Any

import pytest

from tests.tuning.imported.results import a_result, a_run, report_on
from tuning.document import as_markdown, as_text
from tuning.imported.report import parts
from tuning.imported.report_json import to_json
from tuning.imported.runs import request_rate


def without(*keys: str, **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in a_result(**changes).items() if key not in keys}


def test_a_result_of_today() -> None:
    run = a_run()
    assert run.metrics["total_tok_per_s"] == 6400
    assert run.metrics["p99_ttft_ms"] == 700
    assert run.metrics["error_rate"] == 0
    assert run.metrics["gpu_power_mean_w"] is None
    assert (run.started, run.ended) == (datetime(2026, 10, 14, 8, 59, 50), datetime(2026, 10, 14, 9, 0, 0))
    assert run.counts


def test_a_result_of_2024_has_its_total_from_its_counts() -> None:
    """vLLM 0.4 and 0.5: input_throughput, no total, no failures, no concurrency, lists always there."""
    old = without("total_token_throughput", "failed", "max_concurrency", "endpoint_type", "burstiness", "label")
    run = a_run({**old, "input_throughput": 5120.0, "best_of": 1, "input_lens": [512] * 100, "errors": [""] * 100})
    assert run.metrics["total_tok_per_s"] == 6400
    assert run.counts
    assert run.facts == {"backend": "openai"}


def test_goodput_with_the_colon_it_had() -> None:
    run = a_run({**without("request_goodput"), "request_goodput:": 7.5})
    assert run.metrics["goodput_per_s"] == 7.5


def test_percentiles_under_their_other_names() -> None:
    run = a_run({**without("median_ttft_ms"), "p50_ttft_ms": 12.0, "p90_ttft_ms": 13.0, "p99.9_ttft_ms": 14.0})
    assert (run.metrics["median_ttft_ms"], run.metrics["p90_ttft_ms"]) == (12.0, 13.0)
    assert run.facts == {"backend": "openai"}


def test_a_back_end_of_0_10() -> None:
    assert a_run({**without("backend", "endpoint_type"), "endpoint_type": "vllm"}).facts == {"backend": "vllm"}


@pytest.mark.parametrize(("rate", "read"), [("inf", None), (10.0, 10.0), ("10", 10.0), ("fast", None), (None, None)])
def test_the_rate(rate: object, read: float | None) -> None:
    assert request_rate({"request_rate": rate}) == read


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (a_result(completed=97), "3 of 100 requests failed"),
        (a_result(completed=97, errors=["", "Bad Gateway"]), "3 of 100 requests failed: Bad Gateway"),
        (without("failed", completed=97), "97 requests came back of 100; the others failed"),
        (a_result(completed=0, total_input_tokens=0), "none of 100 requests succeeded"),
        (a_result(duration=0), "gave no duration"),
        (a_result(duration=-3.0), "a duration of -3 s"),
        (a_result(request_throughput=12.0), "it tells 12 requests a second, while 100 in 10 s are 10"),
        (a_result(output_throughput=2000.0), "output tokens a second"),
    ],
)
def test_what_is_no_measurement_does_not_count(raw: dict[str, Any], reason: str) -> None:
    run = a_run(raw)
    assert not run.counts
    assert run.rejected is not None
    assert reason in run.rejected


def test_fewer_requests_without_a_failure_are_the_datasets() -> None:
    assert a_run(a_result(completed=97, failed=0)).counts


RANDOM = {"random_input_len": 512, "random_output_len": 128}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({**RANDOM, "total_output_tokens": 12_700, "output_throughput": 1270}, "12700 tokens were generated, 12800"),
        ({**RANDOM, "completed": 97, "failed": 0}, "97 requests came back of 100"),
        (
            {"dataset_name": "random", "output_len": "128", "total_output_tokens": 9, "output_throughput": 0.9},
            "9 tokens",
        ),
        ({"prefix_repetition_num_prefixes": 7, "prefix_repetition_output_len": 128}, "100 requests came back of 98"),
    ],
)
def test_where_the_file_says_what_was_asked_it_is_held_against_it(changes: dict[str, Any], reason: str) -> None:
    rejected = a_run(a_result(**changes)).rejected
    assert rejected is not None
    assert reason in rejected


@pytest.mark.parametrize(
    "changes",
    [
        RANDOM,
        {**RANDOM, "random_range_ratio": 0.5, "total_output_tokens": 12_000, "output_throughput": 1200},
        {"dataset_name": "sharegpt", "output_len": 128, "total_output_tokens": 9000, "output_throughput": 900},
        {"prefix_repetition_num_prefixes": 10, "prefix_repetition_output_len": 999},
        {"dataset_name": "prefix_repetition"},
        {"random_output_len": "many"},
    ],
)
def test_what_was_asked_and_came_counts(changes: dict[str, Any]) -> None:
    assert a_run(a_result(**changes)).rejected is None


def test_before_0_11_2_random_answers_may_end_early() -> None:
    old = without("failed", **RANDOM, total_output_tokens=12_700, output_throughput=1270)
    assert a_run(old).counts


def test_a_load_generator_that_cannot_keep_up_is_told() -> None:
    run = a_run(a_result(median_itl_ms=0.01, mean_itl_ms=9.0))
    assert run.counts
    assert "cannot keep up" in run.notes[0]
    assert a_run(a_result(median_itl_ms=0.0, mean_itl_ms=0.0)).notes == ()


def test_metadata_tells_configuration_load_launch_and_run() -> None:
    run = a_run(a_result(tp="4", version="0.3.3", dataset_name="sharegpt", isl="512", seed="3", launch="2", run="7"))
    assert run.facts == {"tp": "4", "version": "0.3.3", "backend": "openai"}
    assert run.load_facts == {"dataset_name": "sharegpt", "isl": "512"}
    assert (run.seed, run.launch) == ("3", "launch 2")


def test_a_figure_of_a_newer_version_is_no_metadata() -> None:
    assert a_run(a_result(hydration_ratio=0.71, hops=12, layers=[1, 2])).facts == {"backend": "openai"}


@pytest.mark.parametrize("value", [None, "x", [], {}, True, 10**30, float("nan"), -1])
@pytest.mark.parametrize("key", sorted(a_result()))
def test_no_value_of_any_key_stops_it(key: str, value: Any) -> None:
    raw = {**a_result(), key: value}
    report = report_on({"a.json": [raw, a_result(60)], "b.json": [a_result(0, speed=1.1)]})
    json.dumps(to_json(report, with_raw=False), allow_nan=False)
    assert as_text(parts(report))
    assert as_markdown(parts(report, whole=True))
