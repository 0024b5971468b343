import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store.records import SampleRecord
from tests.tuning.examples import at, outcome
from tuning.records import RUN_METRICS
from tuning.run_metrics import run_metrics

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def fixture(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((FIXTURES / name).read_text())
    return result


CPU = fixture("cpu-vllm-0.32.0/bench/random.json")


def sample(seconds: float, **fields: Any) -> SampleRecord:
    return SampleRecord(at=at(seconds), **fields)


def test_a_real_result_is_read_whole() -> None:
    metrics = run_metrics(outcome(CPU, client_cpu_perc=31.0, client_lag_p99_ms=1.5), [])
    assert list(metrics) == list(RUN_METRICS)
    assert metrics["total_tok_per_s"] == CPU["total_token_throughput"]
    assert metrics["output_tok_per_s"] == pytest.approx(1280 / CPU["duration"])
    assert metrics["requests_per_s"] == CPU["request_throughput"]
    assert (metrics["requests_completed"], metrics["requests_failed"], metrics["error_rate"]) == (40, 0, 0)
    assert (metrics["input_tokens"], metrics["output_tokens"]) == (2560, 1280)
    assert metrics["duration_s"] == CPU["duration"]
    assert (metrics["mean_ttft_ms"], metrics["p99_itl_ms"]) == (CPU["mean_ttft_ms"], CPU["p99_itl_ms"])
    assert (metrics["client_cpu_perc"], metrics["client_lag_p99_ms"]) == (31.0, 1.5)


def test_what_the_result_does_not_say_is_none() -> None:
    metrics = run_metrics(outcome(CPU), [])
    for name in ("goodput_per_s", "p90_ttft_ms", "mean_e2el_ms", "preemptions", "prefix_hit_perc", "kv_peak_perc"):
        assert metrics[name] is None
    assert run_metrics(outcome({}), []) == dict.fromkeys(RUN_METRICS)


def test_a_result_of_another_version_is_read_alike() -> None:
    result = fixture("h200-vllm-0.25.1/bench/restart-A1-0.json")
    metrics = run_metrics(outcome(result), [])
    assert metrics["total_tok_per_s"] == pytest.approx(27_223, abs=1)
    assert metrics["mean_tpot_ms"] == result["mean_tpot_ms"]


def test_median_is_also_the_fiftieth_percentile() -> None:
    assert run_metrics(outcome({"p50_ttft_ms": 3.0}), [])["median_ttft_ms"] == 3.0
    assert run_metrics(outcome({"p50_ttft_ms": 3.0, "median_ttft_ms": 4.0}), [])["median_ttft_ms"] == 4.0


def test_failures_are_counted_where_an_old_version_does_not() -> None:
    metrics = run_metrics(outcome({"completed": 30, "num_prompts": 40, "request_goodput:": 2.5}), [])
    assert (metrics["requests_failed"], metrics["error_rate"], metrics["goodput_per_s"]) == (10, 0.25, 2.5)


def test_a_run_without_a_success_has_no_latency() -> None:
    dead = {**CPU, "completed": 0, "failed": 40, "mean_ttft_ms": 0.0, "p99_e2el_ms": 0.0}
    metrics = run_metrics(outcome(dead), [])
    assert metrics["error_rate"] == 1
    assert metrics["mean_ttft_ms"] is None
    assert metrics["p99_e2el_ms"] is None


def test_one_token_answers_have_no_time_between_tokens() -> None:
    metrics = run_metrics(outcome({**CPU, "total_output_tokens": 40, "mean_tpot_ms": 0.0}), [])
    assert metrics["mean_tpot_ms"] is None
    assert metrics["mean_itl_ms"] is None
    assert metrics["mean_ttft_ms"] == CPU["mean_ttft_ms"]


def test_only_finite_numbers_get_through() -> None:
    bad = {"duration": float("nan"), "completed": True, "output_throughput": "12", "mean_ttft_ms": float("inf")}
    assert run_metrics(outcome(bad, client_cpu_perc=float("nan")), []) == dict.fromkeys(RUN_METRICS)


def test_counters_are_taken_from_the_first_to_the_last_sample() -> None:
    samples = [
        sample(0, preemptions=5.0, prefix_queries=1000.0, prefix_hits=400.0, gpu_energy_j=9000.0),
        sample(1),
        sample(2, preemptions=5.0, prefix_queries=2000.0, prefix_hits=500.0, gpu_energy_j=9500.0),
        sample(3, preemptions=5.0, prefix_queries=3000.0, prefix_hits=700.0, gpu_energy_j=10_280.0),
    ]
    metrics = run_metrics(outcome(CPU), samples)
    assert metrics["preemptions"] == 0
    assert metrics["prefix_hit_perc"] == pytest.approx(15.0)
    assert metrics["energy_j_per_token"] == pytest.approx(1.0)


def test_lookups_that_preempted_requests_repeat_are_no_hit_rate() -> None:
    samples = [
        sample(0, preemptions=5.0, prefix_queries=1000.0, prefix_hits=400.0),
        sample(3, preemptions=8.0, prefix_queries=3000.0, prefix_hits=700.0),
    ]
    metrics = run_metrics(outcome(CPU), samples)
    assert (metrics["preemptions"], metrics["prefix_hit_perc"]) == (3, None)
    by_source = [{"local_compute": 500.0}, {"local_compute": 1400.0, "local_cache_hit": 100.0}]
    told = [replace(each, raw={"prompt_by_source": tokens}) for each, tokens in zip(samples, by_source, strict=True)]
    assert run_metrics(outcome(CPU), told)["prefix_hit_perc"] == pytest.approx(10.0)


def test_a_counter_that_starts_anew_says_nothing() -> None:
    samples = [sample(0, preemptions=5.0), sample(1, preemptions=1.0), sample(2, preemptions=9.0)]
    assert run_metrics(outcome(CPU), samples)["preemptions"] is None
    assert run_metrics(outcome(CPU), samples[:1])["preemptions"] is None


def test_no_prompt_was_looked_up_is_not_no_hit() -> None:
    samples = [sample(0, prefix_queries=5.0, prefix_hits=1.0), sample(1, prefix_queries=5.0, prefix_hits=1.0)]
    assert run_metrics(outcome(CPU), samples)["prefix_hit_perc"] is None


def test_peaks_and_the_mean_power_are_over_all_samples() -> None:
    samples = [
        sample(0, running=1.0, waiting=0.0, kv_perc=3.0, gpu_mem_used_gib=10.0, gpu_power_w=100.0),
        sample(1, running=8.0, waiting=2.0, kv_perc=9.5, gpu_mem_used_gib=12.5, gpu_power_w=None),
        sample(2, running=3.0, waiting=None, kv_perc=1.0, gpu_mem_used_gib=11.0, gpu_power_w=300.0),
    ]
    metrics = run_metrics(outcome(CPU), samples)
    assert (metrics["running_peak"], metrics["waiting_peak"], metrics["kv_peak_perc"]) == (8, 2, 9.5)
    assert (metrics["gpu_mem_peak_gib"], metrics["gpu_power_mean_w"]) == (12.5, 200)
