"""What the database holds, as frozen dataclasses: one class a table, one field a column.

Times are UTC in ISO 8601 with a trailing `Z`. What could not be read is None, never 0. `raw` holds whatever else is
worth keeping as a JSON object; it is a dict here and text in the file. `id` is None until the row is written.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

SessionState = Literal["waiting", "running", "paused", "done", "stopped", "failed"]
ServerState = Literal["starting", "ready", "stopping", "stopped", "failed"]
LaunchState = Literal["starting", "ready", "done", "failed", "abandoned"]
RunKind = Literal["warmup", "measured"]
RunState = Literal["running", "done", "rejected", "failed", "abandoned"]
EventLevel = Literal["info", "warning", "error"]
TrainingState = Literal["waiting", "running", "paused", "done", "stopped", "failed"]

ACTIVE_SERVER_STATES: tuple[ServerState, ...] = ("starting", "ready", "stopping")
"""Those of a server that has not ended."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One sweep. `plan_toml` is the plan as it was given; `plan` its parsed form with defaults filled in.

    `candidates` is a list of `{"index", "label", "settings"}`: index 0 is the baseline with empty settings, the others
    in the order of the grid; candidates added later go to the end and indices never change. `environment` holds
    versions, driver, GPU and model hash as they were when the session began.
    """

    name: str
    state: SessionState
    plan_toml: str
    plan: dict[str, Any]
    candidates: list[dict[str, Any]]
    seed: int
    created_at: str
    environment: dict[str, Any] = field(default_factory=dict)
    started_at: str | None = None
    finished_at: str | None = None
    message: str | None = None  # one line: why it is paused, stopped or failed
    keeper_pid: int | None = None
    keeper_start_ticks: int | None = None
    boot_id: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One vLLM process that we started, by hand (`session_id` None) or for a launch of a sweep.

    `pid`, `start_ticks` (field 22 of /proc/PID/stat) and `boot_id` identify the process; `marker` is the secret-free
    token that stands in its environment as LLMTUNE_SERVER and so in that of every descendant. `descendants` is a list
    of `[pid, start_ticks]`. `command` is the argument list, `env` what we added to the environment, redacted.
    """

    name: str
    state: ServerState
    model: str
    host: str
    port: int
    command: list[str]
    env: dict[str, str]
    log_path: str
    marker: str
    session_id: int | None = None
    served_name: str | None = None
    vllm_version: str | None = None
    pid: int | None = None
    start_ticks: int | None = None
    boot_id: str | None = None
    descendants: list[list[int]] = field(default_factory=list)
    keeper_pid: int | None = None
    keeper_start_ticks: int | None = None
    started_at: str | None = None
    ready_at: str | None = None
    stopped_at: str | None = None
    exit_code: int | None = None
    failure_class: str | None = None  # a class of `explain`
    failure: str | None = None  # one line for a person
    facts: dict[str, Any] = field(default_factory=dict)  # `explain`'s facts
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None

    @property
    def address(self) -> str:
        """`127.0.0.1:8000`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """`http://127.0.0.1:8000`."""
        return f"http://{self.address}"


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One start of one candidate's server within a block. A cell (block, candidate, slot) has a further launch, with
    a higher `attempt`, when an earlier one broke before all its runs were done. `position` is its place in the block.
    """

    session_id: int
    block: int
    position: int
    candidate: int
    slot: int
    attempt: int
    state: LaunchState
    server_id: int | None = None
    started_at: str | None = None
    ready_at: str | None = None
    finished_at: str | None = None
    failure_class: str | None = None
    failure: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One benchmark run. The metrics are those of the contract, units in their names; `raw` is the result JSON of
    `vllm bench serve`, whole. `reason` says why a run was rejected or failed. `limited_by` is the
    sentence that says what limited the server meanwhile, None where that cannot be told."""

    session_id: int
    launch_id: int
    block: int
    candidate: int
    slot: int
    workload: str
    kind: RunKind
    repeat: int  # 0-based among the warm-ups or the measured runs of its launch
    seed: int
    state: RunState
    reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    limited_by: str | None = None
    id: int | None = None


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """What one server and the GPUs showed at one moment; counters as they stood, not rates."""

    at: str
    server_id: int | None = None
    run_id: int | None = None
    running: float | None = None
    waiting: float | None = None
    kv_perc: float | None = None  # 0 to 100
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    gpu_mem_used_gib: float | None = None  # summed over the GPUs the server uses
    gpu_util_perc: float | None = None  # mean over them
    gpu_power_w: float | None = None  # summed
    gpu_energy_j: float | None = None  # summed counter
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One line of history: what happened to a session, server, training or evaluation, said for a person."""

    at: str
    level: EventLevel
    text: str
    session_id: int | None = None
    server_id: int | None = None
    training_id: int | None = None
    evaluation_id: int | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


@dataclass(frozen=True, slots=True)
class ImportFileRecord:
    """A file of results that were measured elsewhere, kept once whatever it is called: `content_hash` is the SHA-256 of
    its bytes, `runs` how many results it holds, `raw` these results whole."""

    path: str  # where it was read, absolute
    content_hash: str
    size: int
    runs: int
    imported_at: str
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


@dataclass(frozen=True, slots=True)
class DatasetRecord:
    """Conversations made ready for training: `train.jsonl` and `validation.jsonl` in the folder `path`.

    `data_hash` is the SHA-256 over both as they are written. `sources` is a list of `{"path", "sha256", "bytes",
    "form"}`. Tokens are counted with the chat template of `model`; None where no tokenizer was asked. `report` is what
    was found in the sources and what became of it.
    """

    name: str
    path: str
    data_hash: str
    train_examples: int
    validation_examples: int
    seed: int
    created_at: str
    sources: list[dict[str, Any]] = field(default_factory=list)
    model: str | None = None
    max_length: int | None = None  # tokens; longer records were left out
    train_tokens: int | None = None
    validation_tokens: int | None = None
    report: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """One training of an adapter. `settings` are its TrainingSettings; `path` is its folder, with its checkpoints, its
    progress as JSON lines and its log; `adapter_name` is what its adapter is to be registered as.

    `environment` holds versions, driver, GPU and Python as they were when it began. The trainer's process is told by
    `pid`, `start_ticks` and `boot_id`, its descendants by `marker`, as those of a server. `step` is the last one that
    was reported, `seconds` what it took so far, over all resumptions.
    """

    name: str
    state: TrainingState
    base_model: str
    dataset_id: int
    settings: dict[str, Any]
    seed: int
    path: str
    marker: str
    created_at: str
    adapter_name: str
    base_hash: str | None = None
    data_hash: str | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    python: str | None = None
    pid: int | None = None
    start_ticks: int | None = None
    boot_id: str | None = None
    descendants: list[list[int]] = field(default_factory=list)
    keeper_pid: int | None = None
    keeper_start_ticks: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    step: int | None = None
    steps: int | None = None
    loss: float | None = None
    eval_loss: float | None = None
    seconds: float | None = None
    checkpoint: str | None = None  # the newest whole one
    message: str | None = None  # one line: why it is paused, stopped or failed
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None


@dataclass(frozen=True, slots=True)
class AdapterRecord:
    """One version of an adapter. It never changes (the database refuses it) but for `served`, `notes` and, once, the
    time `deleted_at` at which its files were deleted; its number is not given again.

    `parameters` are those of its adapter_config.json that matter, with `trainable_parameters`. `base_hash` is
    `engine.launch.model.model_hash` of its base, `losses` has `train`, `validation` and whatever else was measured.
    `signature` is the SHA-256 over the sorted names and hashes of the files in `path`. `served` is what was last proved
    of it on a server. One made elsewhere has `imported_from`, the folder it was copied from.
    """

    name: str
    version: int  # from 1, counting up within the name
    base_model: str
    path: str
    signature: str
    size_bytes: int  # of all its files
    created_at: str
    base_hash: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    data_hash: str | None = None
    losses: dict[str, Any] = field(default_factory=dict)
    gpu: str | None = None
    seconds: float | None = None
    training_id: int | None = None
    imported_from: str | None = None
    served: dict[str, Any] = field(default_factory=dict)
    notes: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None
    deleted_at: str | None = None

    @property
    def label(self) -> str:
        """`name@version`, as a person names it."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """What an adapter does to answers it was not trained on, beside its base.

    Losses are the mean of -log p over all answer tokens, in nats; `difference` is the adapter's less the base's, `low`
    and `high` its interval at 95 % over records (None for a single one), `improved` how many records the adapter
    answers better. `answers` are `{"prompt", "base", "adapter"}` of fixed prompts. `raw` holds each record's sums.
    """

    adapter_id: int
    created_at: str
    data_hash: str  # SHA-256 of the file that was evaluated on
    records: int
    answer_tokens: int
    base_loss: float
    adapter_loss: float
    difference: float
    improved: int
    dataset_id: int | None = None
    low: float | None = None
    high: float | None = None
    seconds: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None
