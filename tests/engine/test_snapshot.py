import json
from dataclasses import replace

import pytest

from engine.gpus.gpu import GpuReader
from engine.records import GpuReading
from engine.samples.snapshot import snapshot_json
from engine.scrape.metrics import parse_metrics
from tests.engine.fake_nvml import FakeNvml
from tests.engine.observed import H200

AT = "2026-11-30T10:00:00.000Z"
NO_GPU = GpuReading(at=AT, clock=1.0, note="No GPU: no NVIDIA driver here.")
EARLY, LATE = (
    parse_metrics((H200 / f"metrics/kv-starved-load-{second}.txt").read_text(), AT, float(second))
    for second in ("09", "12")
)


def test_a_server_without_a_gpu() -> None:
    found = snapshot_json(LATE, NO_GPU, url="http://h:1")
    assert list(found) == ["schema", "at", "url", "server", "driver", "cuda", "gpus", "note", "error"]
    assert (found["schema"], found["at"], found["gpus"], found["error"]) == (1, AT, [], None)
    assert found["note"] == "No GPU: no NVIDIA driver here."
    server = found["server"]
    assert (server["url"], server["running"], server["kv_cache_tokens"]) == ("http://h:1", 27.0, 34496.0)
    assert server["kv_perc"] == pytest.approx(97.7726)
    assert server["prefix_hit_perc"] == 0.0
    assert server["rates"] is None
    assert server["latency"]["e2el"]["count"] == 27.0
    assert server["latency"]["e2el"]["mean_ms"] == pytest.approx(1000 * 232.0045485496521 / 27)
    json.dumps(found, allow_nan=False)


def test_rates_and_latencies_are_those_since_the_previous_sample() -> None:
    server = snapshot_json(LATE, NO_GPU, previous=EARLY)["server"]
    assert server["rates"] == {
        "over_s": 3.0,
        "restarted": False,
        "prompt_tok_per_s": 0.0,
        "generation_tok_per_s": (20746 - 14365) / 3,
        "requests_per_s": 4 / 3,
        "preemptions": 8.0,
        "prefix_hit_perc": 0.0,
    }
    assert server["latency"]["e2el"]["count"] == 4.0
    assert server["latency"]["ttft"] == {"count": 0.0, "mean_ms": None, "p50_ms": None, "p90_ms": None, "p99_ms": None}


def test_after_a_restart_latencies_count_from_the_new_start() -> None:
    server = snapshot_json(LATE, NO_GPU, previous=replace(EARLY, process_start=1.0))["server"]
    assert server["rates"]["restarted"] is True
    assert server["rates"]["generation_tok_per_s"] is None
    assert server["latency"]["e2el"]["count"] == 27.0


def test_a_stream_begins_without_the_server_s_life() -> None:
    server = snapshot_json(LATE, NO_GPU, stream=True)["server"]
    assert (server["rates"], server["latency"], server["lengths"]) == (None, {}, {})
    assert server["counted_from"] is None
    assert snapshot_json(LATE, NO_GPU, previous=EARLY, stream=True)["server"]["latency"]["e2el"]["count"] == 4.0


def test_it_is_said_from_where_latencies_count() -> None:
    restarted = replace(EARLY, process_start=1.0)
    said = [snapshot_json(LATE, NO_GPU, previous=one)["server"]["counted_from"] for one in (None, EARLY, restarted)]
    assert said == ["start", "previous", "restart"]


def test_what_only_some_servers_have() -> None:
    text = (H200 / "metrics/lora-after-load.txt").read_text()
    loaded = replace(parse_metrics(text, AT, 1.0), version="0.25.1", rejections={"max_num_queued_reqs": 2.0})
    server = snapshot_json(loaded, NO_GPU)["server"]
    assert (server["vllm_version"], server["sleep_state"]) == ("0.25.1", "awake")
    assert server["lora"] == {"max": 1.0, "running": [], "waiting": []}
    assert server["rejections"] == {"max_num_queued_reqs": 2.0}
    assert server["prompt_tokens_by_source"]["local_compute"] == 5813.0
    assert server["counters"]["prompt_tokens_cached"] == 0.0
    assert server["lengths"]["prompt_length"]["count"] == 40.0
    assert server["lengths"]["prompt_length"]["mean_tokens"] == pytest.approx(5813 / 40)
    assert server["engines"][0]["generation_tokens"] == 2560.0


def test_what_the_buckets_do_not_resolve_has_its_bound() -> None:
    fast = parse_metrics((H200 / "metrics/idle-after-load.txt").read_text(), AT, 1.0)
    itl = snapshot_json(fast, NO_GPU)["server"]["latency"]["itl"]
    assert (itl["p50_ms"], itl["p50_below_ms"], itl["p99_below_ms"]) == (None, 10.0, 10.0)
    assert itl["mean_ms"] == pytest.approx(5.322, abs=0.001)


def test_gpus_without_a_server() -> None:
    reading = GpuReader(FakeNvml(count=2, throttle=0x4), lambda: 1.0, lambda: AT).read()
    found = snapshot_json(None, reading, error="Nothing answers at http://h:1; is the server running?")
    assert (found["server"], found["note"], found["driver"], found["cuda"]) == (None, None, "580.159.04", "13.0")
    assert found["error"] == "Nothing answers at http://h:1; is the server running?"
    gpu = found["gpus"][1]
    assert (gpu["index"], gpu["name"], gpu["throttle_reasons"], gpu["temp_c"]) == (
        1,
        "NVIDIA H200",
        ["power cap"],
        40.0,
    )
    assert gpu["mem_used_gib"] == pytest.approx(130.65, abs=0.01)
    assert gpu["processes"][0] == {"pid": 693, "used_gib": pytest.approx(130.64, abs=0.01), "name": "VLLM::EngineCore"}
    json.dumps(found, allow_nan=False)
