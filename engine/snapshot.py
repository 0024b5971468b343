"""One sample of server and GPUs as the JSON object that `llmtune snapshot --json` prints."""

from typing import Any

from engine import metric_names as names
from engine.gpu_json import gpu_json
from engine.histograms import between, mean, percentile
from engine.rates import Rates, prefix_hit_perc
from engine.records import GpuReading, Histogram, ServerSample
from engine.text import redact

PERCENTILES = (50, 90, 99)


def snapshot_json(
    server: ServerSample | None,
    gpu: GpuReading,
    error: str | None = None,
    previous: ServerSample | None = None,
    url: str | None = None,
) -> dict[str, Any]:
    """The object, units in its keys, absent as None. With a `previous` sample of the same server, `rates` and
    `latency` are those of the time between the two; without one `rates` is None and `latency` since the server's start.

    `note` says why there is no GPU, `error` why there is no server.
    """
    return {
        "schema": 1,
        "at": server.at if server else gpu.at,
        "server": _server(server, previous, url) if server else None,
        "driver": gpu.driver,
        "cuda": gpu.cuda,
        "gpus": [gpu_json(sample) for sample in gpu.gpus],
        "note": gpu.note,
        "error": error,
    }


def _server(server: ServerSample, previous: ServerSample | None, url: str | None) -> dict[str, Any]:
    rates = Rates.between(previous, server) if previous else None
    return {
        "url": None if url is None else redact(url),
        "model_name": server.model_name,
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
        "process_start_unix_s": server.process_start,
        "rates": _rates(rates) if rates else None,
        "latency": _latencies(server, None if rates is None or rates.restarted else previous),
        "engines": [
            {"engine": one.engine, "running": one.running, "waiting": one.waiting, "kv_perc": one.kv_perc}
            for one in server.engines
        ],
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


def _latencies(server: ServerSample, previous: ServerSample | None) -> dict[str, dict[str, float | None]]:
    return {
        name: _latency(between(previous.histograms.get(name) if previous else None, histogram))
        for name, histogram in server.histograms.items()
        if name in names.LATENCIES
    }


def _latency(histogram: Histogram | None) -> dict[str, float | None]:
    """Milliseconds. A percentile that the buckets do not resolve is None, with its bound in `…_below_ms` or
    `…_above_ms`."""
    average = mean(histogram)
    latency: dict[str, float | None] = {
        "count": histogram.count if histogram else None,
        "mean_ms": None if average is None else 1000 * average,
    }
    for perc in PERCENTILES:
        found = percentile(histogram, perc)
        latency[f"p{perc}_ms"] = None if found is None or found.value is None else 1000 * found.value
        if found is not None and not found.resolved:
            if found.upper is not None:
                latency[f"p{perc}_below_ms"] = 1000 * found.upper
            elif found.lower is not None:
                latency[f"p{perc}_above_ms"] = 1000 * found.lower
    return latency
