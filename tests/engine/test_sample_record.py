"""A row of the store gives back what a live look showed."""

import dataclasses
import json
import math
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from engine.gpus.gpu import GpuReader
from engine.gpus.visible_gpus import as_server_sees
from engine.records import EngineSample, GpuReading, GpuSample, Histogram, LoraUse, ServerSample
from engine.samples.sample_record import corners_json, histogram_of, to_record, total_of
from engine.scrape.histograms import between, mean, percentile
from engine.scrape.metrics import parse_metrics
from store.records import SampleRecord
from tests.engine.fake_nvml import FakeNvml, NVMLError_LibraryNotFound
from tests.engine.observed import H200, METRICS, file_id

AT = "2026-11-30T10:00:00.000Z"
NO_GPU = GpuReading(at=AT, clock=1.0)
PERCENTILES = (0, 0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)


def stored(record: SampleRecord) -> SampleRecord:
    """As the store gives it back: `raw` is JSON there."""
    return replace(record, raw=json.loads(json.dumps(record.raw, allow_nan=False)))


def read_back(histogram: Histogram) -> Histogram:
    sample = ServerSample(at=AT, clock=1.0, histograms={"ttft": histogram})
    found = histogram_of(stored(to_record(sample, NO_GPU)), "ttft")
    assert found is not None
    return found


@pytest.mark.parametrize("path", METRICS, ids=file_id)
def test_a_stored_histogram_has_the_percentiles_of_the_scrape(path: Path) -> None:
    scrape = parse_metrics(path.read_text(), AT, 1.0)
    record = stored(to_record(scrape, NO_GPU))
    assert len(scrape.histograms) == 10
    for name, histogram in scrape.histograms.items():
        kept = histogram_of(record, name)
        assert kept is not None
        assert mean(kept) == mean(histogram)
        for perc in PERCENTILES:
            assert percentile(kept, perc) == percentile(histogram, perc)


def random_histogram(dice: random.Random, bounds: list[float], start: Histogram | None = None) -> Histogram:
    """Most buckets empty, as in life; counts on top of `start`'s."""
    added = [dice.choice((0, 0, 0, 0, 1, 2, dice.randrange(1000))) for _ in bounds]
    cumulative, buckets = 0.0, []
    for at, (bound, count) in enumerate(zip(bounds, added, strict=True)):
        cumulative += count
        buckets.append((bound, cumulative + (start.buckets[at][1] if start else 0.0)))
    return Histogram(tuple(buckets), dice.random() * 1e4 + (start.sum if start else 0.0), buckets[-1][1])


@pytest.mark.parametrize("seed", range(200))
def test_any_histogram_keeps_its_percentiles_and_those_of_any_window(seed: int) -> None:
    dice = random.Random(seed)
    bounds = sorted({round(10 ** dice.uniform(-3, 4), 4) for _ in range(dice.randrange(40))})
    before = random_histogram(dice, [*bounds, math.inf])
    after = random_histogram(dice, [*bounds, math.inf], before)
    for whole in (before, after):
        for perc in PERCENTILES:
            assert percentile(read_back(whole), perc) == percentile(whole, perc)
    window, kept = between(before, after), between(read_back(before), read_back(after))
    assert window is not None
    assert kept is not None
    assert (kept.sum, kept.count) == (window.sum, window.count)
    for perc in PERCENTILES:
        exact, found = percentile(window, perc), percentile(kept, perc)
        assert (exact is None) == (found is None)
        if exact is not None and found is not None:
            assert found.resolved == exact.resolved
            assert found.value == (None if exact.value is None else pytest.approx(exact.value))
            assert (found.lower, found.upper) == (exact.lower, exact.upper)


def test_few_of_the_bounds_are_kept() -> None:
    scrape = parse_metrics((H200 / "metrics/kv-starved-end.txt").read_text(), AT, 1.0)
    kept = {name: len(corners_json(one)["corners"]) for name, one in scrape.histograms.items()}
    assert sum(len(one.buckets) for one in scrape.histograms.values()) > 2 * sum(kept.values())
    assert len(json.dumps(to_record(scrape, NO_GPU).raw)) < 4500


def test_what_only_some_servers_have_is_kept_and_what_is_absent_takes_no_place() -> None:
    whole = ServerSample(
        at=AT,
        clock=1.0,
        model_name="m",
        version="0.32.0",
        counters={"spec_drafts": 3.0},
        rejections={"max_num_queued_reqs": 2.0},
        prompt_by_source={"local_compute": 5.0},
        spec_accepted_by_position={"0": 2.0, "1": 1.0},
        lora=LoraUse(4.0, ("a",), ()),
        sleep_state="awake",
        engines=(EngineSample("0", running=1.0), EngineSample("1", generation_tokens=7.0)),
    )
    record = stored(to_record(whole, NO_GPU))
    assert record.raw["counters"] == {"spec_drafts": 3.0}
    assert record.raw["rejections"] == {"max_num_queued_reqs": 2.0}
    assert record.raw["lora"] == {"most": 4.0, "running": ["a"], "waiting": []}
    assert record.raw["engines"] == [asdict(one) for one in whole.engines]
    assert (record.raw["sleep_state"], record.raw["model_name"], record.raw["version"]) == ("awake", "m", "0.32.0")
    assert stored(to_record(ServerSample(at=AT, clock=1.0, engines=whole.engines[:1]), NO_GPU)).raw == {}
    assert stored(to_record(None, NO_GPU, error="Nothing answers.")).raw == {"error": "Nothing answers."}


def test_a_newer_vllm_is_visible_in_a_row() -> None:
    newer = ServerSample(at=AT, clock=1.0, unknown=("vllm:a", "vllm:b"))
    assert stored(to_record(newer, NO_GPU)).raw == {"unknown_series": 2}


def test_totals_of_a_row() -> None:
    record = SampleRecord(AT, raw={"requests_finished": {"stop": 2, "abort": 1.5}, "odd": "text", "none": {}})
    assert total_of(record, "requests_finished") == 3.5
    assert total_of(record, "requests_finished", "stop") == 2.0
    for absent in (("requests_finished", "length"), ("odd", None), ("none", None), ("missing", None)):
        assert total_of(record, *absent) is None


@pytest.mark.parametrize(
    "kept",
    [
        None,
        [],
        {},
        {"sum": 1.0, "count": 1.0},
        {"sum": 1.0, "count": 1.0, "corners": [[0.1]]},
        {"sum": 1.0, "count": 1.0, "corners": [["a", 1.0]]},
        {"sum": None, "count": 1.0, "corners": []},
        {"sum": 1.0, "count": 1.0, "corners": 3},
    ],
)
def test_a_row_that_another_program_wrote_has_no_histogram(kept: object) -> None:
    assert histogram_of(SampleRecord(AT, raw={"histograms": {"ttft": kept}}), "ttft") is None
    assert histogram_of(SampleRecord(AT, raw={"histograms": kept}), "ttft") is None


SERVER = ServerSample(
    at=AT,
    clock=1.0,
    running=31.0,
    waiting=169.0,
    waiting_by_reason={"capacity": 169.0},
    kv_perc=99.0,
    preemptions=3.0,
    prompt_tokens=10.0,
    generation_tokens=20.0,
    prefix_queries=30.0,
    prefix_hits=4.0,
    requests_finished={"length": 5.0},
    process_start=1.79e9,
    gpu_memory_utilization=0.92,
)
GPUS = GpuReading(
    at="2026-11-30T09:59:59.000Z",
    clock=1.0,
    gpus=(
        GpuSample(
            0, mem_used_gib=10.0, util_perc=50.0, power_w=100.0, energy_j=1000.0, throttle_reasons=("power cap",)
        ),
        GpuSample(1, mem_used_gib=20.0, util_perc=100.0, power_w=300.0),
    ),
)


def test_a_record_has_sums_means_and_absences() -> None:
    record = to_record(SERVER, GPUS, 3, 7)
    assert dataclasses.replace(record, raw={}) == SampleRecord(
        at=AT,
        server_id=3,
        run_id=7,
        running=31.0,
        waiting=169.0,
        kv_perc=99.0,
        preemptions=3.0,
        prompt_tokens=10.0,
        generation_tokens=20.0,
        prefix_queries=30.0,
        prefix_hits=4.0,
        gpu_mem_used_gib=30.0,
        gpu_util_perc=75.0,
        gpu_power_w=400.0,
        gpu_energy_j=None,  # one of the two cannot be read
    )
    assert record.raw["waiting_by_reason"] == {"capacity": 169.0}
    assert record.raw["requests_finished"] == {"length": 5.0}
    assert record.raw["process_start"] == 1.79e9
    assert record.raw["gpu_memory_utilization"] == 0.92
    assert [gpu.get("throttle_reasons") for gpu in record.raw["gpus"]] == [["power cap"], None]
    json.dumps(record.raw, allow_nan=False)


def test_only_the_gpus_of_the_server_are_counted() -> None:
    record = to_record(SERVER, as_server_sees(GPUS, {"CUDA_VISIBLE_DEVICES": "0"}))
    assert (record.gpu_mem_used_gib, record.gpu_util_perc, record.gpu_power_w, record.gpu_energy_j) == (
        10,
        50,
        100,
        1000,
    )
    assert [gpu["index"] for gpu in record.raw["gpus"]] == [0]
    assert to_record(SERVER, as_server_sees(GPUS, {"CUDA_VISIBLE_DEVICES": ""})).gpu_mem_used_gib is None


def test_a_record_without_a_server_or_without_gpus() -> None:
    alone = to_record(None, GPUS)
    assert (alone.at, alone.running, alone.gpu_mem_used_gib) == (GPUS.at, None, 30.0)
    nothing = GpuReader(FakeNvml(init_error=NVMLError_LibraryNotFound()), lambda: 1.0, lambda: AT).read()
    record = to_record(SERVER, nothing)
    assert (record.gpu_mem_used_gib, record.gpu_util_perc, record.gpu_power_w) == (None, None, None)
    assert "gpus" not in record.raw
    assert record.raw["gpu_note"] == nothing.note


def test_only_finite_numbers_are_recorded() -> None:
    for value in dataclasses.asdict(to_record(SERVER, GPUS)).values():
        assert not isinstance(value, float) or math.isfinite(value)
