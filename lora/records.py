"""What crosses the parts of this room, as frozen dataclasses: conversations, datasets, the settings of a training."""

from dataclasses import dataclass, field
from typing import Any, Literal

from engine.records import EngineError

Role = Literal["system", "user", "assistant"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant")

ALL_LINEAR = "all-linear"
"""peft's own word for every linear layer but the output layer."""

ATTENTION_QV = ("q_proj", "v_proj")
"""The two that the LoRA paper settles on (Hu et al. 2021, arXiv:2106.09685, section 7.1)."""

MAX_LENGTH = 1024
"""Tokens of an example, unless a person says otherwise."""

Quantization = Literal["nf4", "none"]
DType = Literal["auto", "bfloat16", "float16", "float32"]


class LoraError(EngineError):
    """Something about data, a training or an adapter that a person must hear: one line that says what to do."""


class DataUnfit(LoraError):
    """A file that holds nothing to train on."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Example:
    """One conversation to learn from: an optional system turn, then user and assistant in turn, an answer last.

    `line` is where its record began in the file it came from, counted from 1. `tokens` is its length with the
    model's chat template, `answer_tokens` how many of them bear loss; None where no tokenizer was asked.
    """

    messages: tuple[Message, ...]
    line: int
    tokens: int | None = None
    answer_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """What `llmtune lora prepare` makes of a file: both parts in the order in which they are written."""

    name: str
    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    seed: int
    data_hash: str  # SHA-256 over both parts as they are written
    report: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """What a training is started with; defaults are QLoRA's (Dettmers et al. 2023, arXiv:2305.14314, appendix B).

    One of `epochs` and `steps` is None; a step is an update of the weights, after `batch` × `accumulation` examples.
    `learning_rate` rises linearly over `warmup` (a share of all steps), then falls to 0 along a cosine.
    `eval_every` and `save_every` count steps; None is a tenth of all, at least one. `max_length` is in tokens: longer
    examples are left out, not cut. `validation` is the share that the dataset holds out, for the record.
    """

    base_model: str
    dataset_id: int
    r: int = 16
    alpha: float = 32
    dropout: float = 0.05
    targets: str | tuple[str, ...] = ALL_LINEAR
    learning_rate: float = 2e-4
    batch: int = 1
    accumulation: int = 8
    epochs: float | None = 3.0
    steps: int | None = None
    max_length: int = MAX_LENGTH
    gradient_checkpointing: bool = True
    dtype: DType = "auto"
    quantization: Quantization = "nf4"
    seed: int = 0
    validation: float = 0.1
    eval_every: int | None = None
    save_every: int | None = None
    warmup: float = 0.03
    weight_decay: float = 0.0
    max_grad_norm: float = 0.3
