"""An adapter held against its base: losses on records that its training never saw, answers side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.numbers import finite
from engine.text import clean
from lora.evaluations.paired_loss import Direction, RecordLoss, direction_of, paired
from lora.records import MAX_LENGTH, Example, LoraError, Message, Quantization
from store.clock import utc_now
from store.evaluation_job import EvaluationJobRecord
from store.records import EvaluationRecord

FIXED_PROMPTS = 3
"""So many questions of the own data are answered side by side, unless others are given."""
LIKE = ("device", "dtype", "template", "versions")
"""What must be the same for two lives to measure the same."""

Prompt = tuple[Message, ...]

_SAID: Mapping[Direction, str] = {
    "better": "the adapter answers its data better than its base",
    "worse": "the adapter answers its data WORSE than its base",
    "undecided": "no difference is shown: the interval holds 0",
}


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """`prompts` are conversations that wait for an answer; None takes the first questions of the own data.
    `quantization` of the base is what it is to be served with; `max_length` and `max_new_tokens` are in tokens."""

    prompts: tuple[Prompt, ...] | None = None
    max_length: int = MAX_LENGTH
    max_new_tokens: int = 64
    quantization: Quantization = "none"


def questions(examples: Sequence[Example], most: int = FIXED_PROMPTS) -> tuple[Prompt, ...]:
    """The first conversations up to their last answer: always the same ones of a data set."""
    return tuple(example.messages[:-1] for example in examples[:most] if len(example.messages) > 1)


class Measured:
    """What the script has told so far, line by line, over all its lives. A line of another form changes nothing."""

    def __init__(self) -> None:
        self.plan: dict[str, Any] = {}
        self.losses: dict[int, RecordLoss] = {}
        self.answers: dict[int, tuple[str, str]] = {}
        """Of the base and of the adapter."""
        self.anew = False
        """Whether what an earlier life had measured was of no use to the newest."""
        self.seconds: float | None = None
        self.why_failed: str | None = None
        self.is_done = False
        self._lengths: dict[int, int] = {}
        self._begun: tuple[float, int] | None = None  # seconds and tokens before the first batch of this life

    def take(self, line: Mapping[str, Any]) -> None:
        """Raises nothing."""
        kind, index = line.get("kind"), _whole(line.get("index"))
        if (seconds := finite(line.get("seconds"))) is not None:
            self.seconds = seconds
        if kind == "start":
            self.why_failed, self.is_done, self._begun = None, False, None
        elif kind == "plan":
            self._planned(line)
        elif kind == "record" and index is not None:
            self._measured(index, line)
        elif kind == "answer" and index is not None:
            self.answers[index] = str(line.get("base")), str(line.get("adapter"))
        elif kind == "done":
            self.is_done = True
        elif kind == "failed":
            self.why_failed = clean(str(line.get("why")), 600)

    @property
    def records(self) -> int | None:
        """Of which losses are to be measured; None before that is known."""
        return _whole(self.plan.get("records"))

    @property
    def stage(self) -> str:
        """`loading`, `records` or `answers`."""
        if self.records is None or self._begun is None:
            return "loading"
        return "records" if len(self.losses) < self.records else "answers"

    @property
    def seconds_left(self) -> float | None:
        """For the losses, at the pace of this life, by tokens: records come in the order of their length."""
        length = _whole(self.plan.get("length"))
        if self.stage != "records" or self._begun is None or length is None or self.seconds is None:
            return None
        began, before = self._begun
        measured = sum(self._lengths.values())
        if measured <= before:
            return None
        return max(0.0, (self.seconds - began) / (measured - before) * (length - measured))

    def known(self) -> dict[str, Any]:
        """What the next life need not measure, for its job."""
        like = {key: self.plan.get(key) for key in LIKE} if self.plan else None
        return {"like": like, "records": sorted(self.losses), "answers": sorted(self.answers)}

    def _planned(self, line: Mapping[str, Any]) -> None:
        self.anew = bool(self.losses or self.answers) and line.get("kept") is not True
        if self.anew:
            self.losses, self.answers, self._lengths = {}, {}, {}
        self.plan = {key: value for key, value in line.items() if key not in ("kind", "seconds")}
        self._begun = self.seconds or 0.0, sum(self._lengths.values())

    def _measured(self, index: int, line: Mapping[str, Any]) -> None:
        tokens, base, adapter = _whole(line.get("tokens")), finite(line.get("base")), finite(line.get("adapter"))
        if tokens is None or base is None or adapter is None:
            return
        self.losses[index] = RecordLoss(index, tokens, base, adapter)
        self._lengths[index] = _whole(line.get("length")) or 0


def evaluation_record(job: EvaluationJobRecord, measured: Measured) -> EvaluationRecord:
    """The result of the work, with its number. Raises LoraError where nothing could be measured."""
    if not measured.losses:
        raise LoraError(
            f"no record of {job.data} can be used: all are longer than {job.settings.get('max_length')} tokens"
        )
    losses = [measured.losses[index] for index in sorted(measured.losses)]
    prompts = job.settings["prompts"]
    found = paired(losses)
    return EvaluationRecord(
        id=job.id,
        adapter_id=job.adapter_id,
        created_at=utc_now(),
        data_hash=job.data_hash,
        records=found.records,
        answer_tokens=found.tokens,
        base_loss=found.base,
        adapter_loss=found.adapter,
        difference=found.difference,
        improved=found.improved,
        dataset_id=job.dataset_id,
        low=found.low,
        high=found.high,
        seconds=measured.seconds,
        settings={
            **{key: job.settings.get(key) for key in ("max_length", "max_new_tokens", "quantization")},
            "data": job.data,
            "left_out": _whole(measured.plan.get("left_out")) or 0,
        },
        answers=[
            {"prompt": clean(prompts[index][-1]["content"]), "base": clean(base), "adapter": clean(adapter)}
            for index, (base, adapter) in sorted(measured.answers.items())
            if index < len(prompts)
        ],
        environment={key: measured.plan.get(key) for key in LIKE} | {"python": job.python},
        raw={"records": [[each.index, each.tokens, each.base, each.adapter] for each in losses]},
    )


def sentence(found: EvaluationRecord) -> str:
    """What the losses say."""
    interval = " (a single record has no interval)"
    if found.low is not None and found.high is not None:
        interval = f" ({found.difference:+.4f}, 95 % from {found.low:+.4f} to {found.high:+.4f} nats a token)"
    said = _SAID[direction_of(found.low, found.high)]
    return f"{said}{interval}; better on {found.improved} of {found.records} records"


def settings_json(settings: EvaluationSettings, examples: Sequence[Example]) -> dict[str, Any]:
    """As the row keeps them, with the prompts that are asked."""
    prompts = settings.prompts if settings.prompts is not None else questions(examples)
    return {**asdict(settings), "prompts": [[asdict(message) for message in prompt] for prompt in prompts]}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
