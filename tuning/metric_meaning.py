"""What each metric of a run means, in one line: how `vllm bench serve` measures it, or what it is read from.

After vLLM 0.33's `vllm/benchmarks/serve.py` and `lib/endpoint_request_func.py`. The same words do not mean the same in
other tools: GuideLLM's time per output token includes the first token, AIPerf's inter-token latency is by request.
"""

_STATS = {"mean": "mean", "median": "median", "p90": "90th percentile", "p99": "99th percentile"}
_LATENCIES = {
    "ttft": "time to first token: from sending a request to the first chunk of its answer; waiting in the client for a "
    "free place (max_concurrency) is not in it",
    "itl": "inter-token latency: the gap between two chunks of a stream, over the gaps of all requests together; a "
    "chunk may hold several tokens, and long answers weigh more",
    "tpot": "time per output token: (end to end − TTFT) / (tokens − 1) of a request; every request weighs alike, those "
    "of one token are left out",
    "e2el": "end-to-end latency: from sending a request to its last chunk",
}
_DURATION = "over the whole duration of the run, ramp-up and drain included"
_MEANINGS = {
    "total_tok_per_s": f"prompt and generated tokens a second, {_DURATION}",
    "output_tok_per_s": f"generated tokens a second, {_DURATION}",
    "requests_per_s": f"requests that succeeded a second, {_DURATION}",
    "error_rate": "failed requests over all, 0 to 1",
    "goodput_per_s": f"requests a second that met all of the workload's goodput bounds, {_DURATION}",
    "preemptions": "requests thrown out of a full KV cache during the run, to be computed again",
    "prefix_hit_perc": "of the prompt tokens those found in the prefix cache",
    "kv_peak_perc": "the highest use of the KV cache's blocks, sampled once a second",
    "running_peak": "the most requests computed at once, sampled once a second",
    "waiting_peak": "the most requests in the server's queue, sampled once a second",
    "gpu_mem_peak_gib": "the most memory in use on the server's GPUs together; GiB is 2^30 bytes",
    "gpu_power_mean_w": "the mean power of the server's GPUs together",
    "energy_j_per_token": "the rise of the GPUs' energy counters over the run, per generated token: reading prompts is "
    "paid for by them; the rest of the machine is not in it",
    "client_cpu_perc": "CPU of the load generator, of one core",
    "client_lag_p99_ms": "how late the load generator's event loop was, 99th percentile",
    "duration_s": "from the first request to the last answer",
    "requests_completed": "requests that succeeded",
    "requests_failed": "requests that failed",
    "input_tokens": "prompt tokens of the run",
    "output_tokens": "generated tokens of the run",
}


def meaning(metric: str) -> str:
    """`p99_ttft_ms` → "99th percentile over the requests of a run of the time to first token: …"; "" for no metric."""
    if metric in _MEANINGS:
        return _MEANINGS[metric]
    stat, _, rest = metric.partition("_")
    what = rest.removesuffix("_ms")
    if stat not in _STATS or what not in _LATENCIES:
        return ""
    over = "" if what == "itl" else "over the requests of a run "
    return f"{_STATS[stat]} {over}of the {_LATENCIES[what]}"
