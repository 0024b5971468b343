"""What a vLLM server says at /metrics, made up: any version's names, any load, any absurdity."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

WIDE = "模型-ｗｉｄｅ-é́"  # two columns a character, and marks that take none
HOSTILE_NAMES = (
    "/models/my model [/bold] {x}, y=z",
    "[/mnt/x]",
    "[a=b]",
    "[core.py:58]",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "x" * 10_000,
    WIDE,
    "\u202eevil",
    'quote " backslash \\ line\nfeed',
)
# What stands in the place of honest numbers: none of it may reach a screen, nor break one.
ABSURD = ("NaN", "+Inf", "-Inf", "1e300", "-1e300", "1e308", "-1", "1" + "0" * 400)

Names = Literal["new", "old", "v0", "rust"]
_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.3, 0.5, 1.0, 2.5, 10.0, math.inf)
_LENGTHS = (10.0, 100.0, 1000.0, 10_000.0, math.inf)


@dataclass
class Served:
    """What an honest page says. Gauges are of each engine; counters grow by their rates since the process began.

    `names`: "new" 0.25 and later, "old" 0.10, "v0" the engine before V1 (no engine label), "rust" the Rust front end of
    0.33 (OpenMetrics, no process start, no configuration). `leave_out`: series whose name has one of these are absent.
    """

    model: str = "m"
    names: Names = "new"
    engines: int = 1
    running: float = 3
    waiting: float = 0
    waiting_deferred: float = 0
    kv: float = 0.4  # a share
    prompt_per_s: float = 1000
    generation_per_s: float = 500
    requests_per_s: float = 10  # finished
    preemptions_per_s: float = 0
    hits_per_s: float = 250  # of prompt_per_s tokens asked for
    seconds: dict[str, float] = field(  # how long each request took, the same for all
        default_factory=lambda: {
            "time_to_first_token": 0.2,
            "inter_token_latency": 0.02,
            "request_time_per_output_token": 0.02,
            "e2e_request_latency": 2.0,
            "request_queue_time": 0.4,
            "request_prefill_time": 0.2,
            "request_decode_time": 1.5,
        }
    )
    adapters: tuple[str, ...] = ()
    drafts_per_s: float = 0
    rejected_per_s: float = 0
    version: str = "0.32.0"
    leave_out: tuple[str, ...] = ()
    absurd: str | None = None  # in place of each number, one of ABSURD
    extra: str = ""  # further lines
    clock: Callable[[], float] = time.monotonic
    life: int = 0
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._started = time.time()

    def restart(self) -> None:
        """Another process: its counters begin at 0."""
        self.life += 1
        self._began = self.clock()
        self._started = max(time.time(), self._started + 0.01)

    def page(self) -> str:
        age = self.clock() - self._began
        lines = [line for engine in range(self.engines) for line in self._of_engine(str(engine), age)]
        if self.names == "rust":
            lines = [line.removesuffix(".0") for line in lines]
        else:
            lines.append(f"process_start_time_seconds {self._started}")
            lines.append('http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 40.0')
        if self.rejected_per_s:
            reason = f'model_name="{_escaped(self.model)}",reason="max_num_queued_reqs"'
            lines.append(f"vllm:admission_rejections_total{{{reason}}} {float(int(self.rejected_per_s * age))}")
        lines = [line for line in lines if not any(part in line.partition("{")[0] for part in self.leave_out)]
        if self.absurd is not None:
            lines = [f"{line.rpartition(' ')[0]} {self.absurd}" for line in lines]
        return "\n".join(
            [*lines, *([self.extra] if self.extra else []), *(["# EOF"] if self.names == "rust" else []), ""]
        )

    def _of_engine(self, engine: str, age: float) -> Iterator[str]:
        labels = f'model_name="{_escaped(self.model)}"'
        labels = labels if self.names == "v0" else f'engine="{engine}",{labels}'
        old = self.names in ("old", "v0")

        def line(name: str, value: float, more: str = "") -> str:
            return f"vllm:{name}{{{labels}{more}}} {float(value)}"

        def total(name: str, per_s: float, more: str = "") -> str:
            return line(f"{name}_total", int(per_s * age), more)

        yield line("num_requests_running", self.running)
        yield line("num_requests_waiting", self.waiting)
        yield line("gpu_cache_usage_perc" if old else "kv_cache_usage_perc", self.kv)
        yield total("num_preemptions", self.preemptions_per_s)
        yield total("prompt_tokens", self.prompt_per_s)
        yield total("generation_tokens", self.generation_per_s)
        prefix = "gpu_prefix_cache" if old else "prefix_cache"
        yield total(f"{prefix}_queries", self.prompt_per_s)
        yield total(f"{prefix}_hits", self.hits_per_s)
        yield total("request_success", self.requests_per_s, ',finished_reason="stop"')
        if not old:
            yield line("num_requests_waiting_by_reason", self.waiting - self.waiting_deferred, ',reason="capacity"')
            yield line("num_requests_waiting_by_reason", self.waiting_deferred, ',reason="deferred"')
            yield total("prompt_tokens_by_source", self.prompt_per_s - self.hits_per_s, ',source="local_compute"')
            yield total("prompt_tokens_by_source", self.hits_per_s, ',source="local_cache_hit"')
            yield total("prompt_tokens_cached", self.hits_per_s)
        if self.names == "new":
            config = 'block_size="16",gpu_memory_utilization="0.92",kv_cache_size_tokens="34496",num_gpu_blocks="2156"'
            yield f'vllm:cache_config_info{{engine="{engine}",{config}}} 1.0'
            for state in ("awake", "weights_offloaded", "discard_all"):
                yield line("engine_sleep_state", state == "awake", f',sleep_state="{state}"')
        count = int(self.requests_per_s * age)
        for name, each in self.seconds.items():
            renamed = "time_per_output_token" if old and name == "inter_token_latency" else name
            if not (old and name == "request_time_per_output_token"):
                yield from _histogram(line, f"{renamed}_seconds", _BOUNDS, each, count)
        yield from _histogram(line, "request_prompt_tokens", _LENGTHS, 100.0, count)
        yield from _histogram(line, "request_generation_tokens", _LENGTHS, 50.0, count)
        yield from _histogram(line, "iteration_tokens_total", _LENGTHS, 8.0, int(20 * age))
        if self.adapters:
            names = _escaped(",".join(self.adapters))
            for running, at in (("", 1.79e9), (names, 1.79e9 + age)):
                more = f'max_lora="4",running_lora_adapters="{running}",waiting_lora_adapters=""'
                yield f"vllm:lora_requests_info{{{more}}} {at}"
        if self.drafts_per_s:
            yield total("spec_decode_num_drafts", self.drafts_per_s)
            yield total("spec_decode_num_draft_tokens", 3 * self.drafts_per_s)
            yield total("spec_decode_num_accepted_tokens", 1.5 * self.drafts_per_s)
            for position, share in enumerate((0.8, 0.5, 0.2)):
                more = f',position="{position}"'
                yield total("spec_decode_num_accepted_tokens_per_pos", share * self.drafts_per_s, more)


def _histogram(
    line: Callable[..., str], name: str, bounds: tuple[float, ...], each: float, count: int
) -> Iterator[str]:
    for bound in bounds:
        le = "+Inf" if math.isinf(bound) else str(bound)
        yield line(f"{name}_bucket", count if each <= bound else 0, f',le="{le}"')
    yield line(f"{name}_sum", each * count)
    yield line(f"{name}_count", count)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
