"""The names under which vLLM 0.10 to 0.33 exposes what we read: meaning → wire names, newest first.

Names are matched whole, never by a part: `vllm:num_requests_waiting_by_reason` and `vllm:external_prefix_cache_hits`
contain others, and `vllm:iteration_tokens_total` is a histogram although it ends as counters do. The Python client adds
`_total` to each counter on the wire.
"""

RUNNING = ("vllm:num_requests_running",)
WAITING = ("vllm:num_requests_waiting",)
WAITING_BY_REASON = ("vllm:num_requests_waiting_by_reason",)  # 0.20.2 on; label reason: capacity, deferred
KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")  # 0 to 1; the second is shown up to 0.10 only
PREEMPTIONS = ("vllm:num_preemptions_total",)
PROMPT_TOKENS = ("vllm:prompt_tokens_total",)
GENERATION_TOKENS = ("vllm:generation_tokens_total",)
PREFIX_QUERIES = ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")
PREFIX_HITS = ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
REQUESTS_FINISHED = ("vllm:request_success_total",)  # counts aborts and errors too; label finished_reason
PROMPT_BY_SOURCE = ("vllm:prompt_tokens_by_source_total",)  # 0.17.1 on; label source
REJECTIONS = ("vllm:admission_rejections_total",)  # 0.32 on; label reason, no engine
SPEC_ACCEPTED_BY_POSITION = ("vllm:spec_decode_num_accepted_tokens_per_pos_total",)  # label position, from 0
SLEEP_STATE = "vllm:engine_sleep_state"  # a gauge for each state, 1 for that which holds
LORA = "vllm:lora_requests_info"  # labels are the values; the gauge is the unix time at which they held
CACHE_CONFIG = "vllm:cache_config_info"  # a gauge of 1 whose labels are the values
PROCESS_START = "process_start_time_seconds"  # single-process Python front end only

# Totals that stand on a panel of their own where a server has them.
COUNTERS: dict[str, tuple[str, ...]] = {
    "prompt_tokens_cached": ("vllm:prompt_tokens_cached_total",),  # 0.17.1 on
    "external_prefix_queries": ("vllm:external_prefix_cache_queries_total",),
    "external_prefix_hits": ("vllm:external_prefix_cache_hits_total",),
    "mm_queries": ("vllm:mm_cache_queries_total",),
    "mm_hits": ("vllm:mm_cache_hits_total",),
    "spec_drafts": ("vllm:spec_decode_num_drafts_total",),
    "spec_draft_tokens": ("vllm:spec_decode_num_draft_tokens_total",),
    "spec_accepted_tokens": ("vllm:spec_decode_num_accepted_tokens_total",),
    "corrupted_requests": ("vllm:corrupted_requests_total",),
}

# Up to 0.10.0 the time between two tokens was called time per output token; from 0.11.2 on the latter is per request.
HISTOGRAMS: dict[str, tuple[str, ...]] = {
    "ttft": ("vllm:time_to_first_token_seconds",),
    "itl": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "tpot": ("vllm:request_time_per_output_token_seconds",),
    "e2el": ("vllm:e2e_request_latency_seconds",),
    "queue": ("vllm:request_queue_time_seconds",),
    "prefill": ("vllm:request_prefill_time_seconds",),
    "decode": ("vllm:request_decode_time_seconds",),
    "prompt_length": ("vllm:request_prompt_tokens",),  # tokens
    "output_length": ("vllm:request_generation_tokens",),  # tokens
    "step_tokens": ("vllm:iteration_tokens_total",),  # tokens of one step of an engine, prompt and generated
}

# Those in seconds, as a request lives through them.
LATENCIES = ("ttft", "itl", "tpot", "queue", "prefill", "decode", "e2el")

_GAUGES = (
    "num_requests_running num_requests_waiting num_requests_waiting_by_reason num_requests_swapped kv_cache_usage_perc "
    "gpu_cache_usage_perc cpu_cache_usage_perc cpu_prefix_cache_hit_rate gpu_prefix_cache_hit_rate engine_sleep_state "
    "cache_config_info lora_requests_info num_requests_kv_fetch_by_stage"
)
_COUNTERS = (
    "num_preemptions prompt_tokens generation_tokens prompt_tokens_by_source prompt_tokens_cached "
    "prompt_tokens_cached_by_source prompt_tokens_recomputed prefix_cache_queries prefix_cache_hits "
    "gpu_prefix_cache_queries gpu_prefix_cache_hits external_prefix_cache_queries external_prefix_cache_hits "
    "mm_cache_queries mm_cache_hits request_success admission_rejections corrupted_requests spec_decode_num_drafts "
    "spec_decode_num_draft_tokens spec_decode_num_accepted_tokens spec_decode_num_accepted_tokens_per_pos "
    "estimated_flops_per_gpu estimated_read_bytes_per_gpu estimated_write_bytes_per_gpu watermark_requests"
)
_OTHER_HISTOGRAMS = (
    "request_params_n request_params_max_tokens "
    "request_max_num_generation_tokens request_inference_time_seconds request_prefill_kv_computed_tokens "
    "request_num_preemptions kv_block_lifetime_seconds kv_block_idle_before_evict_seconds kv_block_reuse_gap_seconds"
)

# Parts of vLLM that only some set-ups load (KV connectors, offloading, speech, weight updates, …): known, and not read.
OPTIONAL_PARTS = tuple(
    f"vllm:{part}_"
    for part in (
        *("diffusion", "hf3fs", "hisparse", "kv_offload", "mooncake", "nixl", "rl", "simple_kv_offload", "sleep_mode"),
        *("tool_call_parser", "websocket"),
    )
)


def _known() -> frozenset[str]:
    names = {f"vllm:{name}" for name in _GAUGES.split()}
    for name in _COUNTERS.split():
        names |= {f"vllm:{name}{suffix}" for suffix in ("", "_total", "_created")}
    histograms = [name for group in HISTOGRAMS.values() for name in group]
    histograms += [f"vllm:{name}" for name in _OTHER_HISTOGRAMS.split()]
    for name in histograms:
        names |= {name + suffix for suffix in ("_bucket", "_sum", "_count", "_created")}
    return frozenset(names)


KNOWN_SERIES = _known()


def _read() -> frozenset[str]:
    single = (
        *(RUNNING + WAITING + WAITING_BY_REASON + KV_USAGE + PREEMPTIONS + PROMPT_TOKENS + GENERATION_TOKENS),
        *(PREFIX_QUERIES + PREFIX_HITS + REQUESTS_FINISHED + PROMPT_BY_SOURCE + REJECTIONS + SPEC_ACCEPTED_BY_POSITION),
        *(SLEEP_STATE, LORA, CACHE_CONFIG, PROCESS_START),
        *(name for group in COUNTERS.values() for name in group),
    )
    histograms = (name for group in HISTOGRAMS.values() for name in group)
    return frozenset(single) | {name + suffix for name in histograms for suffix in ("_bucket", "_sum", "_count")}


READ_SERIES = _read()


def is_known(name: str) -> bool:
    """Whether a `vllm:` series is one of the versions that this table was made from; a newer vLLM's is not."""
    return name in KNOWN_SERIES or name.startswith(OPTIONAL_PARTS)
