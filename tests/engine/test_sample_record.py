"""A row of the store gives back what a live look showed."""

import json
import math
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from engine.histograms import between, mean, percentile
from engine.metrics import parse_metrics
from engine.records import EngineSample, GpuReading, Histogram, LoraUse, ServerSample
from engine.sample_record import corners_json, histogram_of, to_record, total_of
from store.records import SampleRecord
from tests.engine.observed import H200, METRICS, file_id

AT = "2026-11-30T10:00:00.000Z"
NO_GPU = GpuReading(at=AT, clock=1.0, note="No GPU: no NVIDIA driver here.")
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
    assert (record.raw["sleep_state"], record.raw["model_name"]) == ("awake", "m")
    assert stored(to_record(ServerSample(at=AT, clock=1.0, engines=whole.engines[:1]), NO_GPU)).raw == {}
    assert stored(to_record(None, NO_GPU, error="Nothing answers.")).raw == {"error": "Nothing answers."}


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
