"""A data set's report, and all that is known of an adapter, as documents to read. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.numbers import finite
from engine.text import clean
from lora.data.report_text import lines_of_report
from store.records import DatasetRecord, EvaluationRecord
from tui.format import local_minute, number
from tui.lora.curves import loss_text
from tui.lora.details import AdapterDetails, DatasetDetails
from tui.lora.lines import size_text, validation_loss
from tui.lora.words import evaluation_text, losses_text, report_text, source_text
from tuning.document import Code, Heading, Paragraph, Part, Points, Table

ANSWER = 600  # characters of an answer that is shown
EVALUATIONS = 10


def dataset_parts(found: DatasetDetails, width: int | None = None) -> list[Part]:
    """The report as it was kept, and what was trained with the data set."""
    dataset = found.dataset
    parts: list[Part] = [
        Heading(f"data set {dataset.id} {clean(dataset.name, 80)}"),
        Table(
            ("part", "conversations", "tokens"),
            (
                ("train", number(finite(dataset.train_examples)), number(finite(dataset.train_tokens))),
                ("validation", number(finite(dataset.validation_examples)), number(finite(dataset.validation_tokens))),
            ),
            right=frozenset({1, 2}),
        ),
        Points(tuple(_about(dataset))),
        Heading("what became of the file"),
        _report(dataset.report, width),
    ]
    if found.trainings:
        parts.append(Heading("trained with"))
        rows = tuple(
            (f"{one.id} {clean(one.name, 40)}", one.state, loss_text(one.loss), loss_text(one.eval_loss))
            for one in found.trainings
        )
        parts.append(Table(("training", "state", "loss", "evaluation"), rows, right=frozenset({2, 3})))
    return parts


def _about(dataset: DatasetRecord) -> list[str]:
    lines = [f"from {clean(source_text(source), 400)}" for source in dataset.sources if isinstance(source, dict)]
    lines.append(f"made {_minute(dataset.created_at)}, seed {dataset.seed}, SHA-256 {clean(dataset.data_hash, 64)}")
    if dataset.model:
        limit = number(finite(dataset.max_length))
        lines.append(f"tokens counted by {clean(dataset.model, 300)}, longer than {limit} left out")
    lines.append(f"in {clean(dataset.path, 300)} of the data directory")
    return lines


def _report(report: Mapping[str, Any], width: int | None) -> Part:
    """As it was told when the file was prepared; of one in an unknown form what can be read of it."""
    try:
        return Code("\n".join(lines_of_report(report, None if width is None else width - 2)))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return Points(tuple(f"{label}: {text}" for label, text in report_text(report)) or ("nothing is known",))


def adapter_parts(
    found: AdapterDetails, evaluations: Sequence[EvaluationRecord], examined: Sequence[str] | str | None
) -> list[Part]:
    """`examined` is what vLLM makes of it, a line each, why that cannot be told, or None while it is looked at."""
    adapter = found.adapter
    parts: list[Part] = [Heading(f"adapter {clean(adapter.label, 80)}"), Points(tuple(_adapter_lines(found)))]
    if len(found.versions) > 1:
        rows = tuple(
            (str(one.version), _minute(one.created_at), loss_text(validation_loss(one)), size_text(one.size_bytes))
            for one in found.versions
        )
        parts.append(Table(("version", "made", "validation loss", "size"), rows, right=frozenset({2, 3})))
    parts.append(Heading("what vLLM makes of it"))
    if examined is None:
        parts.append(Paragraph("looking at its files …"))
    elif isinstance(examined, str):
        parts.append(Paragraph(clean(examined, 400), strong=True))
    else:
        parts.append(Points(tuple(examined)))
    parts.append(Heading("against its base"))
    if not evaluations:
        parts.append(Paragraph("It was not evaluated yet: enter on the adapter, then e."))
    for one in list(reversed(evaluations))[:EVALUATIONS]:
        parts.append(Paragraph(f"{_minute(one.created_at)}: {evaluation_text(one)}"))
    if evaluations:
        parts += _answers(evaluations[-1])
    return parts


def _adapter_lines(found: AdapterDetails) -> list[str]:
    adapter = found.adapter
    served = ", ".join(f"{clean(one.name, 60)} on port {one.port} ({one.state})" for one in found.served)
    origin = f"training {adapter.training_id}" if adapter.training_id is not None else "made elsewhere"
    if adapter.imported_from:
        origin += f", imported from {clean(adapter.imported_from, 300)}"
    lines = [
        f"served by {served}" if served else "not served now",
        f"base {clean(adapter.base_model, 300)}",
        f"losses: {losses_text(adapter)}",
        f"from {origin}, {_minute(adapter.created_at)}",
        f"signed {clean(adapter.signature, 64)}, {size_text(adapter.size_bytes)}",
    ]
    return [*lines, f"notes: {clean(adapter.notes, 400)}"] if adapter.notes else lines


def _answers(evaluation: EvaluationRecord) -> list[Part]:
    """Side by side where there is room for no columns: one below the other."""
    parts: list[Part] = []
    for answer in evaluation.answers[:20]:
        if isinstance(answer, Mapping):
            lines = (f"{who}: {clean(str(answer.get(key, '')), ANSWER)}" for who, key in _SPEAKERS)
            parts.append(Points(tuple(lines)))
    return [Heading("answers"), *parts] if parts else []


_SPEAKERS = (("asked", "prompt"), ("base", "base"), ("adapter", "adapter"))


def _minute(at: str) -> str:
    try:
        return local_minute(at)
    except (ValueError, OverflowError):
        return clean(at, 30)
