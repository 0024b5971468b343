"""An evaluation for a person and as JSON: how far it is, what it found."""

import textwrap
from typing import Any

from engine.numbers import finite
from engine.text import clean
from lora.evaluations.evaluation import sentence
from lora.evaluations.paired_loss import direction_of, perplexity
from store.evaluation_job import EvaluationJobRecord
from store.records import EvaluationRecord
from tui.format import number, span
from tui.lora.evaluating import live_of
from tui.output import columns

_ANSWER_LINES = 4


def job_json(job: EvaluationJobRecord) -> dict[str, Any]:
    """The work, without what is measured."""
    keys = (
        "id", "state", "base_model", "data", "data_hash", "dataset_id", "done", "records", "seconds", "created_at",
        "started_at", "finished_at", "message",
    )  # fmt: skip
    live = {key: live_of(job).get(key) for key in ("stage", "seconds_left")}
    return {"adapter": job.name} | {key: getattr(job, key) for key in keys} | live


def evaluation_lines(label: str, found: EvaluationRecord) -> list[str]:
    """The losses as a table, the answers side by side, and last what the losses say."""
    left_out = finite(found.settings.get("left_out"))
    left = f", {number(left_out)} left out" if left_out else ""
    data = clean(str(found.settings.get("data")), 200)
    rows = [
        ["base", number(found.base_loss, 4), number(perplexity(found.base_loss), 2)],
        ["adapter", number(found.adapter_loss, 4), number(perplexity(found.adapter_loss), 2)],
        ["difference", f"{found.difference:+.4f}", f"x {number(perplexity(found.difference), 3)}"],
    ]
    where = f"{found.environment.get('device')}, {found.environment.get('dtype')}"
    return [
        f"{label} on {found.records:,} records, {found.answer_tokens:,} answer tokens of {data}{left}",
        *columns(["", "loss", "perplexity"], rows, frozenset({1, 2})),
        f"took {span(found.seconds)} on {clean(where, 80)}",
        *(line for answer in found.answers for line in _answer_lines(answer)),
        "",
        sentence(found),
    ]


def evaluation_json(label: str, found: EvaluationRecord) -> dict[str, Any]:
    return {
        "id": found.id,
        "adapter": label,
        "adapter_id": found.adapter_id,
        "data": found.settings.get("data"),
        "data_hash": found.data_hash,
        "dataset_id": found.dataset_id,
        "records": found.records,
        "left_out": found.settings.get("left_out"),
        "answer_tokens": found.answer_tokens,
        "base": {"loss": found.base_loss, "perplexity": perplexity(found.base_loss)},
        "adapter_losses": {"loss": found.adapter_loss, "perplexity": perplexity(found.adapter_loss)},
        "difference": {"loss": found.difference, "low": found.low, "high": found.high},
        "direction": direction_of(found.low, found.high),
        "improved": found.improved,
        "seconds": found.seconds,
        "environment": found.environment,
        "answers": found.answers,
    }


def _answer_lines(answer: dict[str, Any]) -> list[str]:
    lines = [""]
    for who, key in (("asked", "prompt"), ("base", "base"), ("adapter", "adapter")):
        text = clean(str(answer.get(key)))
        wrapped = textwrap.wrap(text, 100, max_lines=_ANSWER_LINES, placeholder=" …") or ["(nothing)"]
        lines += [f"  {who if at == 0 else '':<8} {line}" for at, line in enumerate(wrapped)]
    return lines
