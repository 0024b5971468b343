"""An evaluation as work that a keeper carries out; what it found is an EvaluationRecord of the same number."""

from dataclasses import dataclass, field
from typing import Any, Literal

EvaluationState = Literal["waiting", "running", "done", "stopped", "failed"]
GOING_ON: tuple[EvaluationState, ...] = ("waiting", "running")


@dataclass(frozen=True, slots=True)
class EvaluationJobRecord:
    """`name` is the adapter's label, `name@version`; `data` says for a person what it is held against, `data_path` is
    the file, within the data directory where it lies there, `path` its own folder with what was measured so far.

    `done` of `records` are measured; both None until that is known. The process is told by `pid`, `start_ticks` and
    `boot_id`, its descendants by `marker`, as those of a training. `seconds` are over all resumptions. `raw` has `live`
    (`stage`: loading, records or answers; `seconds_left` or None) and what the process told of itself.
    """

    adapter_id: int
    name: str
    state: EvaluationState
    base_model: str
    data: str
    data_path: str
    data_hash: str  # SHA-256 of that file
    path: str
    marker: str
    created_at: str
    dataset_id: int | None = None
    base_hash: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    python: str | None = None
    pid: int | None = None
    start_ticks: int | None = None
    boot_id: str | None = None
    keeper_pid: int | None = None
    keeper_start_ticks: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    done: int | None = None
    records: int | None = None
    seconds: float | None = None
    message: str | None = None  # one line: what was found, or why it is stopped or failed
    raw: dict[str, Any] = field(default_factory=dict)
    id: int | None = None
