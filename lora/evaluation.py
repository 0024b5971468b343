"""An adapter held against its base: losses on records that its training never saw, answers side by side."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.asking import absolute_model, told_by
from lora.own_data import OwnData
from lora.paired_loss import Paired, RecordLoss, paired
from lora.records import MAX_LENGTH, Example, LoraError, Message, Quantization
from lora.training_python import TrainingPython
from store.clock import utc_now
from store.records import AdapterRecord, EvaluationRecord

SCRIPT = "llmtune_evaluate.py"
FIXED_PROMPTS = 3
"""So many questions of the own data are answered side by side, unless others are given."""

Prompt = tuple[Message, ...]
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """`prompts` are conversations that wait for an answer; None takes the first questions of the own data.
    `quantization` of the base is what it is to be served with; `max_length` and `max_new_tokens` are in tokens."""

    prompts: tuple[Prompt, ...] | None = None
    max_length: int = MAX_LENGTH
    max_new_tokens: int = 64
    quantization: Quantization = "none"


@dataclass(frozen=True, slots=True)
class Answered:
    """One question, answered greedily by both."""

    prompt: str
    base: str
    adapter: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    paired: Paired
    losses: tuple[RecordLoss, ...]
    answers: tuple[Answered, ...]
    left_out: int
    seconds: float
    environment: dict[str, Any] = field(default_factory=dict)


def evaluate(
    folder: Path,
    base: str,
    data: OwnData,
    python: TrainingPython,
    environ: Mapping[str, str],
    settings: EvaluationSettings = EvaluationSettings(),
    on_progress: OnProgress = lambda done, of: None,
) -> Evaluation:
    """Load the base with the adapter of `folder` in the training Python and measure both; `on_progress` hears how many
    records of how many are done. Raises LoraError."""
    began = time.monotonic()
    prompts = settings.prompts if settings.prompts is not None else questions(data.examples)
    job = {
        "model": absolute_model(base),
        "adapter": str(folder),
        "examples": str(data.path),
        "max_length": settings.max_length,
        "quantization": settings.quantization,
        "prompts": [[asdict(message) for message in prompt] for prompt in prompts],
        "max_new_tokens": settings.max_new_tokens,
    }
    plan: dict[str, Any] = {}
    losses: list[RecordLoss] = []
    answers: list[Answered] = []
    for told in told_by(SCRIPT, job, python, environ):
        if told["kind"] == "plan":
            plan = told
        elif told["kind"] == "record":
            losses.append(_loss(told))
            on_progress(len(losses), int(plan["records"]))
        elif told["kind"] == "answer":
            shown = prompts[told["index"]][-1].content
            answers.append(Answered(clean(shown), clean(told["base"]), clean(told["adapter"])))
    if not losses:
        raise LoraError(f"no record of {data.what} can be used: all are longer than {settings.max_length} tokens")
    environment = {key: plan.get(key) for key in ("device", "dtype", "template")} | {"python": python.python}
    return Evaluation(
        paired(losses),
        tuple(sorted(losses, key=lambda each: each.index)),
        tuple(answers),
        int(plan["left_out"]),
        time.monotonic() - began,
        environment,
    )


def questions(examples: Sequence[Example], most: int = FIXED_PROMPTS) -> tuple[Prompt, ...]:
    """The first conversations up to their last answer: always the same ones of a data set."""
    return tuple(example.messages[:-1] for example in examples[:most] if len(example.messages) > 1)


def evaluation_record(
    adapter: AdapterRecord, data: OwnData, evaluation: Evaluation, settings: EvaluationSettings
) -> EvaluationRecord:
    """The row that is kept."""
    assert adapter.id is not None
    found = evaluation.paired
    return EvaluationRecord(
        adapter_id=adapter.id,
        created_at=utc_now(),
        data_hash=data.data_hash,
        records=found.records,
        answer_tokens=found.tokens,
        base_loss=found.base,
        adapter_loss=found.adapter,
        difference=found.difference,
        improved=found.improved,
        dataset_id=data.dataset_id,
        low=found.low,
        high=found.high,
        seconds=evaluation.seconds,
        settings={
            "max_length": settings.max_length,
            "max_new_tokens": settings.max_new_tokens,
            "quantization": settings.quantization,
            "data": data.what,
            "left_out": evaluation.left_out,
        },
        answers=[asdict(answer) for answer in evaluation.answers],
        environment=evaluation.environment,
        raw={"records": [[each.index, each.tokens, each.base, each.adapter] for each in evaluation.losses]},
    )


def _loss(told: Mapping[str, Any]) -> RecordLoss:
    for who in ("base", "adapter"):
        value = told[who]
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise LoraError(
                f"the loss of the {who} on record {told['index'] + 1} is no number: its weights or its dtype overflow"
            )
    return RecordLoss(told["index"], told["tokens"], float(told["base"]), float(told["adapter"]))
