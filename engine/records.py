"""Facts about one server and one machine, as frozen dataclasses. Only finite floats or None leave this room."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["ready", "failed", "starting", "unknown"]


@dataclass(frozen=True, slots=True)
class Installation:
    """One vLLM. `command` starts its command line: `.../bin/vllm`, or `python -m vllm.entrypoints.cli.main`.

    `python` is the interpreter it runs in, `bin_dir` goes first on the PATH of what we start, `path` is what was asked
    for.
    """

    path: str
    python: str
    command: tuple[str, ...]
    bin_dir: str
    version: str  # as its dist-info says, e.g. "0.25.1" or "0.32.0+cpu"


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a vLLM log tells of a start, GiB and seconds. Names as in `explain --json`."""

    weights_gib: float | None = None
    load_s: float | None = None
    kv_cache_gib: float | None = None
    kv_cache_tokens: int | None = None
    max_concurrency: float | None = None
    max_concurrency_at_tokens: int | None = None
    graph_capture_s: float | None = None
    graph_gib: float | None = None
    compile_s: float | None = None
    init_s: float | None = None
    attention_backend: str | None = None
    quantization_kernel: str | None = None
    # not in `facts` of the contract, kept beside it
    vllm_version: str | None = None
    listening: bool = False  # "Application startup complete." or the server's "Starting vLLM … on" line was seen
    served_url: str | None = None
    engine_config: dict[str, str] = field(default_factory=dict)  # key=value pairs of "Initializing a V1 LLM engine"
    non_default_args: str | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """A Prometheus histogram: cumulative counts by upper bound in the metric's own unit (seconds or tokens)."""

    buckets: tuple[tuple[float, float], ...]  # (le, cumulative count); the last le is inf
    sum: float
    count: float


@dataclass(frozen=True, slots=True)
class EngineSample:
    """One engine's series of one scrape (an engine is a data-parallel rank)."""

    engine: str
    running: float | None = None
    waiting: float | None = None
    kv_perc: float | None = None  # 0 to 100
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class LoraUse:
    """The adapters that requests use now. vLLM says that it may be wrong with several engines."""

    most: float | None = None  # max-loras
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerSample:
    """One scrape of /metrics. Sums over engines where a sum means something; `kv_perc` is the largest engine's.

    Counters are totals since the server's start. Absent series are None. `at` is UTC ISO 8601, `clock` the monotonic
    seconds of the same moment, for rates.
    """

    at: str
    clock: float
    model_name: str | None = None
    version: str | None = None  # vLLM's own, as GET /version says
    running: float | None = None
    waiting: float | None = None
    waiting_by_reason: dict[str, float] = field(default_factory=dict)
    kv_perc: float | None = None  # 0 to 100
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    requests_finished: dict[str, float] = field(default_factory=dict)  # by finished_reason
    kv_cache_tokens: float | None = None
    num_gpu_blocks: float | None = None
    block_size: float | None = None
    gpu_memory_utilization: float | None = None
    process_start: float | None = None  # unix seconds
    histograms: dict[str, Histogram] = field(default_factory=dict)  # keys: those of metric_names.HISTOGRAMS
    counters: dict[str, float] = field(default_factory=dict)  # further totals; keys: those of metric_names.COUNTERS
    prompt_by_source: dict[str, float] = field(default_factory=dict)  # total prompt tokens by where they came from
    rejections: dict[str, float] = field(default_factory=dict)  # total requests not admitted, by reason
    spec_accepted_by_position: dict[str, float] = field(default_factory=dict)  # total draft tokens accepted
    lora: LoraUse | None = None
    sleep_state: str | None = None  # awake, weights_offloaded, discard_all
    engines: tuple[EngineSample, ...] = ()
    unknown: tuple[str, ...] = ()  # vllm: series that no table of ours names


@dataclass(frozen=True, slots=True)
class GpuProcess:
    pid: int
    used_gib: float | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU as NVML shows it; each field alone may be None (not supported here)."""

    index: int
    uuid: str | None = None
    name: str | None = None
    mem_total_gib: float | None = None
    mem_used_gib: float | None = None
    mem_reserved_gib: float | None = None
    mem_free_gib: float | None = None
    util_perc: float | None = None
    mem_util_perc: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    energy_j: float | None = None
    sm_clock_mhz: float | None = None
    mem_clock_mhz: float | None = None
    temp_c: float | None = None
    throttle_reasons: tuple[str, ...] | None = None  # () is "not throttled", None is "cannot be read"
    pcie_rx_mib_per_s: float | None = None
    pcie_tx_mib_per_s: float | None = None
    ecc_errors: float | None = None  # uncorrected, since the driver was loaded
    processes: tuple[GpuProcess, ...] = ()
    sm_clock_max_mhz: float | None = None
    mem_clock_max_mhz: float | None = None
    temp_slowdown_c: float | None = None  # from where the hardware slows it down
    pcie_gen: float | None = None  # now; an idle link may fall back
    pcie_gen_max: float | None = None
    pcie_width: float | None = None  # lanes
    pcie_width_max: float | None = None
    ecc_corrected: float | None = None
    mig: bool | None = None  # cut into slices: its figures are of the whole GPU
    error: str | None = None  # why it does not answer; all else but its names is None then


@dataclass(frozen=True, slots=True)
class GpuReading:
    """All GPUs at one moment. `note` is one line where there are none or they cannot be read (no driver, mismatch), or
    where one of them does not answer."""

    at: str
    clock: float
    gpus: tuple[GpuSample, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    note: str | None = None
    used: int | None = None  # how many of `gpus`, from the first, a server computes on; None: all


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What is to be started. `flags` are those of `vllm serve` without dashes: `{"max-num-seqs": 64}`.

    True is a bare flag, False its `--no-` form, a list stands as separate arguments after one flag, a dict is JSON.
    `extra_args` are passed on untouched, `env` joins our own environment.
    """

    model: str
    host: str
    port: int
    flags: dict[str, Any] = field(default_factory=dict)
    served_name: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    extra_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process that cannot be mistaken for another: pid, start time in clock ticks since boot, and that boot's id."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """One run of `vllm bench serve`: its arguments without `bench serve` itself (`["--dataset-name", "random", …]`)."""

    argv: tuple[str, ...]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class BenchOutcome:
    """`result` is the JSON that `vllm bench serve --save-result` would write. `wall_s` is the whole call as the caller
    saw it, so `wall_s - result["duration"]` is what a run costs beyond its load. Client figures are None where the run
    went through the command line. `errors` are the distinct errors of failed requests, one short line each. The load
    itself runs from `load_started_at` (UTC, None where it is not known) for `result["duration"]` seconds: before it the
    prompts are made."""

    result: dict[str, Any]
    wall_s: float
    started_at: str
    finished_at: str
    client_cpu_perc: float | None = None
    client_lag_p99_ms: float | None = None
    via: Literal["process", "command"] = "process"
    errors: tuple[str, ...] = ()
    load_started_at: str | None = None


class EngineError(Exception):
    """Something about the server or machine that a person must hear: one clear line that says what to do."""


class VllmNotFound(EngineError):
    pass


class VllmTooOld(EngineError):
    pass


class PortTaken(EngineError):
    pass


class ModelUnfit(EngineError):
    """What is given as a model is none."""


class LaunchFailed(EngineError):
    """The server did not become ready. `failure_class` is a class of `explain`, `numbers` those of its explanation;
    `exit_code` None if it still ran."""

    def __init__(
        self,
        message: str,
        failure_class: str = "unknown",
        exit_code: int | None = None,
        numbers: Mapping[str, float | int] | None = None,
    ) -> None:
        super().__init__(message)
        self.failure_class = failure_class
        self.exit_code = exit_code
        self.numbers = dict(numbers or {})


class BenchFailed(EngineError):
    """A benchmark that gave no result at all (the process died, timed out, or vLLM raised)."""
