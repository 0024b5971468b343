"""One sample of server and GPUs as the JSON object that `llmtune snapshot --json` prints."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from engine.gpus.gpu_json import gpu_json
from engine.records import GpuReading, Histogram, LoraUse, ServerSample
from engine.samples.rates import Rates, prefix_hit_perc
from engine.scrape import metric_names as names
from engine.scrape.histograms import between, mean, percentile
from engine.text import redact

PERCENTILES = (50, 90, 99)
LENGTHS = ("prompt_length", "output_length", "step_tokens")


def snapshot_json(
    server: ServerSample | None,
    gpu: GpuReading,
    error: str | None = None,
    previous: ServerSample | None = None,
    url: str | None = None,
    stream: bool = False,
) -> dict[str, Any]:
    """The object, units in its keys, absent as None. `rates`, `latency` and `lengths` are those of the time since the
    `previous` sample of the same server, or since it restarted. Without one there are no rates, and the others count
    from the server's start; in a `stream`, where one number stands beside the next, they are then left out too.
    `counted_from` says which it is.

    `note` says why there is no GPU, `error` why there is no server.
    """
    return {
        "schema": 1,
        "at": server.at if server else gpu.at,
        "url": None if url is None else redact(url),
        "server": _server(server, previous, url, stream) if server else None,
        "driver": gpu.driver,
        "cuda": gpu.cuda,
        "gpus": [gpu_json(sample) for sample in gpu.gpus],
        "note": gpu.note,
        "error": error,
    }


def _server(server: ServerSample, previous: ServerSample | None, url: str | None, stream: bool) -> dict[str, Any]:
    rates = Rates.between(previous, server) if previous else None
    since = None if rates is None or rates.restarted else previous
    told = previous is not None or not stream
    return {
        "url": None if url is None else redact(url),
        "model_name": server.model_name,
        "vllm_version": server.version,
        "running": server.running,
        "waiting": server.waiting,
        "waiting_by_reason": dict(server.waiting_by_reason),
        "kv_perc": server.kv_perc,
        "kv_cache_tokens": server.kv_cache_tokens,
        "num_gpu_blocks": server.num_gpu_blocks,
        "block_size": server.block_size,
        "gpu_memory_utilization": server.gpu_memory_utilization,
        "preemptions": server.preemptions,
        "prompt_tokens": server.prompt_tokens,
        "generation_tokens": server.generation_tokens,
        "prefix_queries": server.prefix_queries,
        "prefix_hits": server.prefix_hits,
        "prefix_hit_perc": prefix_hit_perc(server),
        "requests_finished": dict(server.requests_finished),
        "rejections": dict(server.rejections),
        "prompt_tokens_by_source": dict(server.prompt_by_source),
        "spec_accepted_by_position": dict(server.spec_accepted_by_position),
        "counters": dict(server.counters),
        "lora": _lora(server.lora) if server.lora else None,
        "sleep_state": server.sleep_state,
        "process_start_unix_s": server.process_start,
        "rates": _rates(rates) if rates else None,
        "counted_from": "previous" if since else "restart" if previous else None if stream else "start",
        "latency": _spread(server, since, names.LATENCIES, "ms", 1000) if told else {},
        "lengths": _spread(server, since, LENGTHS, "tokens", 1) if told else {},
        "engines": [asdict(one) for one in server.engines],
        "unknown_series": list(server.unknown),
    }


def _rates(rates: Rates) -> dict[str, Any]:
    return {
        "over_s": rates.seconds,
        "restarted": rates.restarted,
        "prompt_tok_per_s": rates.prompt_tok_per_s,
        "generation_tok_per_s": rates.generation_tok_per_s,
        "requests_per_s": rates.requests_per_s,
        "preemptions": rates.preemptions,
        "prefix_hit_perc": rates.prefix_hit_perc,
    }


def _lora(use: LoraUse) -> dict[str, Any]:
    return {"max": use.most, "running": list(use.running), "waiting": list(use.waiting)}


def _spread(
    server: ServerSample, previous: ServerSample | None, wanted: Sequence[str], unit: str, scale: float
) -> dict[str, dict[str, float | None]]:
    return {
        name: histogram_json(between(previous.histograms.get(name) if previous else None, histogram), unit, scale)
        for name in wanted
        if (histogram := server.histograms.get(name))
    }


def histogram_json(histogram: Histogram | None, unit: str, scale: float) -> dict[str, float | None]:
    """Count, mean and percentiles in `unit`, of which one of the histogram's own has `scale`. A percentile that the
    buckets do not resolve is None, with its bound in `…_below_ms` or `…_above_ms`."""
    average = mean(histogram)
    figures: dict[str, float | None] = {
        "count": histogram.count if histogram else None,
        f"mean_{unit}": None if average is None else scale * average,
    }
    for perc in PERCENTILES:
        found = percentile(histogram, perc)
        figures[f"p{perc}_{unit}"] = None if found is None or found.value is None else scale * found.value
        if found is not None and not found.resolved:
            if found.upper is not None:
                figures[f"p{perc}_below_{unit}"] = scale * found.upper
            elif found.lower is not None:
                figures[f"p{perc}_above_{unit}"] = scale * found.lower
    return {name: value if value is None or math.isfinite(value) else None for name, value in figures.items()}
