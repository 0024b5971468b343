"""The keys of a result: vLLM's own, by version, and what a person or a sweep added to them.

Of the wheels 0.10.0 to 0.33.0 (vllm/benchmarks/serve.py), and benchmarks/benchmark_serving.py of 2024 and 2025 before:
always        date backend model_id tokenizer_id num_prompts request_rate duration completed total_input_tokens
              total_output_tokens request_throughput output_throughput {mean,median,p99}_{ttft,tpot}_ms
2024          best_of; at first input_throughput in place of total_token_throughput; no burstiness, no max_concurrency
to 2025       request_goodput with a colon behind it; the lists below always, whatever was asked for
0.10 on       label, endpoint_type (the back end: alone in 0.10, beside backend since)
0.11 on       max_output_tokens_per_s max_concurrent_requests ramp_up_*; failed from 0.11.2
later         rtfx spec_decode_* probe_* diffusion_* latencies queue_times (seen in 0.32)
`request_rate` is the text "inf" where there was no limit; `--metadata` adds texts at the top level; any percentile may
be there, as p<NN>; `--save-detailed` adds the lists input_lens output_lens ttfts itls generated_texts errors.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_OWN = frozenset(
    {
        *("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "best_of"),
        *("use_beam_search", "request_rate", "burstiness", "max_concurrency", "duration", "completed", "failed"),
        *("request_goodput", "rtfx", "run_number", "_benchmark_name", "seed"),
    }
)
_OWN_FORMS = re.compile(
    r"(?:total|max|mean|median|std|p[\d.]+|ramp_up|probe|spec_decode|diffusion|server|energy)_.*|.*_throughput|request_goodput:"
    r"|.*_(?:lens|times|ttfts|texts|events)|ttfts|itls|errors|latencies"
)
_OF_LOAD = re.compile(
    r"(?:data(?:set)?|workload|scenario|task|isl|osl|load|profile)(?:_?name|_path)?|(?:random|sharegpt|sonnet|hf|custom|prefix)_.*"
    r"|(?:input|output|prompt)_(?:len(?:gth)?|tokens)|(?:max_)?concurrency",
    re.IGNORECASE,
)
_OF_RUN = re.compile(
    r"(?:run|rep(?:eat)?|iter(?:ation)?|trial|attempt)(?:_?(?:number|id|no|index))?|time(?:stamp)?|(?:start|end)(?:ed)?_?(?:time|at)"
    r"|host(?:name)?|uuid|id|comments?|notes?|user",
    re.IGNORECASE,
)
_OF_LAUNCH = re.compile(r"(?:launch|server|restart)(?:_?(?:id|number|no))?", re.IGNORECASE)
_LONGEST = 80


def metadata(raw: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """`(kind, key, text)` of what was added by `--metadata`: kind is "configuration", "load", "launch" or "run". Only
    texts and truth values: vLLM keeps metadata as texts, and a number is a figure of a version that we do not know."""
    for key, value in raw.items():
        if key in _OWN or _OWN_FORMS.fullmatch(key) or not isinstance(value, str | bool):
            continue
        text = str(value).strip()
        if text:
            yield kind_of(key), key, text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def kind_of(key: str) -> str:
    if _OF_RUN.fullmatch(key):
        return "run"
    if _OF_LAUNCH.fullmatch(key):
        return "launch"
    return "load" if _OF_LOAD.fullmatch(key) else "configuration"
