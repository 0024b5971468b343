"""A sample as a row of the store, and what the row's JSON holds read back: the two ends of one format.

`raw` has beside the columns what only some servers have, so that a history shows all that a live look does:

    requests_finished, waiting_by_reason, rejections, prompt_by_source, spec_accepted_by_position   {label: total}
    counters         {meaning: total}, the meanings of metric_names.COUNTERS
    histograms       {meaning: {"sum", "count", "corners": [[le, cumulative], …]}}, le null for infinity
    engines          [{"engine", "running", "waiting", "kv_perc", …}], where there are several
    lora             {"most", "running": […], "waiting": […]}
    process_start, gpu_memory_utilization, kv_cache_tokens, sleep_state, model_name, version
    unknown_series   how many series of vLLM's no table of ours names: it is newer than we know
    gpus             [one object a GPU, as in `snapshot --json`, without what is absent]
    gpu_note         why there is no GPU, or which of them cannot be read
    error            why the server gave no sample
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from engine.gpus.gpu_json import gpu_kept
from engine.numbers import finite, sum_of_all
from engine.records import GpuReading, Histogram, ServerSample
from store.records import SampleRecord


def to_record(
    server: ServerSample | None,
    gpu: GpuReading,
    server_id: int | None = None,
    run_id: int | None = None,
    error: str | None = None,
) -> SampleRecord:
    """One row for the database. `gpu` has the GPUs that the server sees (engine.gpus.visible_gpus), of which
    those that it uses are summed; `error` says why there is no server.

    A figure of several GPUs is None as soon as one of them cannot be read: a sum over some of them would be wrong.
    """
    gpus = gpu.gpus[: gpu.used]
    utilization = sum_of_all(sample.util_perc for sample in gpus)
    return SampleRecord(
        at=server.at if server else gpu.at,
        server_id=server_id,
        run_id=run_id,
        running=server.running if server else None,
        waiting=server.waiting if server else None,
        kv_perc=server.kv_perc if server else None,
        preemptions=server.preemptions if server else None,
        prompt_tokens=server.prompt_tokens if server else None,
        generation_tokens=server.generation_tokens if server else None,
        prefix_queries=server.prefix_queries if server else None,
        prefix_hits=server.prefix_hits if server else None,
        gpu_mem_used_gib=sum_of_all(sample.mem_used_gib for sample in gpus),
        gpu_util_perc=None if utilization is None else utilization / len(gpus),
        gpu_power_w=sum_of_all(sample.power_w for sample in gpus),
        gpu_energy_j=sum_of_all(sample.energy_j for sample in gpus),
        raw=_raw(server, gpu, error),
    )


def _raw(server: ServerSample | None, gpu: GpuReading, error: str | None) -> dict[str, Any]:
    raw: dict[str, Any] = {}
    if server:
        raw = {
            "requests_finished": server.requests_finished,
            "waiting_by_reason": server.waiting_by_reason,
            "rejections": server.rejections,
            "prompt_by_source": server.prompt_by_source,
            "spec_accepted_by_position": server.spec_accepted_by_position,
            "counters": server.counters,
            "histograms": {name: corners_json(histogram) for name, histogram in server.histograms.items()},
            "engines": [asdict(one) for one in server.engines] if len(server.engines) > 1 else [],
            "lora": asdict(server.lora) if server.lora else None,
            "process_start": server.process_start,
            "gpu_memory_utilization": server.gpu_memory_utilization,
            "kv_cache_tokens": server.kv_cache_tokens,
            "sleep_state": server.sleep_state,
            "model_name": server.model_name,
            "version": server.version,
            "unknown_series": len(server.unknown) or None,
        }
    raw["gpus"] = [gpu_kept(sample) for sample in gpu.gpus]
    raw["gpu_note"] = gpu.note
    raw["error"] = error
    return {name: value for name, value in raw.items() if value not in (None, {}, [])}


def corners_json(histogram: Histogram) -> dict[str, Any]:
    """A histogram without the bounds at which nothing changes: `histogram_of` gives the same percentiles from it.

    A bound stays where its count differs from the one before or from the one after, so each bucket that holds values
    keeps both its ends. Of vLLM's 20 to 40 bounds some 5 to 10 are left.
    """
    corners: list[list[float | None]] = []
    before = 0.0
    for at, (bound, cumulative) in enumerate(histogram.buckets):
        last = at + 1 == len(histogram.buckets)
        if last or cumulative != before or histogram.buckets[at + 1][1] != cumulative:
            corners.append([None if math.isinf(bound) else bound, cumulative])
        before = cumulative
    return {"sum": histogram.sum, "count": histogram.count, "corners": corners}


def histogram_of(record: SampleRecord, name: str) -> Histogram | None:
    """The histogram of that meaning as the row holds it, None where it has none."""
    kept = _mapping(record.raw.get("histograms")).get(name)
    if not isinstance(kept, Mapping):
        return None
    try:
        buckets = tuple((math.inf if le is None else float(le), float(count)) for le, count in kept["corners"])
        return Histogram(buckets, float(kept["sum"]), float(kept["count"]))
    except (KeyError, TypeError, ValueError):  # a row that another program wrote
        return None


def total_of(record: SampleRecord, group: str, name: str | None = None) -> float | None:
    """A total of `raw`: `("counters", "spec_drafts")`, or with no name the sum over the labels of a group."""
    values = _mapping(record.raw.get(group))
    found = [value for key, value in values.items() if name is None or key == name]
    known = [number for value in found if (number := finite(value)) is not None]
    return finite(sum(known)) if known else None


def requests_finished(record: SampleRecord) -> float | None:
    """Requests that ended since the server's start, for whatever reason."""
    return total_of(record, "requests_finished")


def kept_gpus(record: SampleRecord | None) -> list[Mapping[str, Any]]:
    """The GPUs of a row, each as its JSON object; [] where it holds none singly."""
    return _objects(record, "gpus")


def kept_engines(record: SampleRecord | None) -> list[Mapping[str, Any]]:
    """The engines of a row, each as its JSON object; [] of a server that has one."""
    return _objects(record, "engines")


def _objects(record: SampleRecord | None, group: str) -> list[Mapping[str, Any]]:
    kept = record.raw.get(group) if record is not None else None
    return [one for one in kept if isinstance(one, Mapping)] if isinstance(kept, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
