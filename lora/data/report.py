"""What was found in a file, as JSON and as lines. Both hold text of the file: cleaned, to be shown without markup."""

from collections.abc import Iterable
from typing import Any

from engine.text import clean, redact
from lora.data.advice import advice
from lora.data.faults import KINDS, REPAIRS, counts
from lora.data.records import Examination, Fault, FaultKind, Spread
from lora.data.report_text import lines_of_report
from lora.records import DataUnfit, Example

_LINES_KEPT = 50
_TURNS_KEPT, _TEXT_KEPT = 4, 400  # of the first conversation


def refuse_unusable(found: Examination) -> None:
    """Raises DataUnfit where nothing can be learnt from the file: what it holds, and what it should."""
    if found.usable:
        return
    first = next(iter(found.faults), None)
    number = counts(found.faults)
    kind: FaultKind = max(number, key=lambda kind: number[kind], default="unknown_form")
    detail = next((fault.detail for fault in found.faults if fault.kind == kind and fault.detail), "")
    if kind in ("unknown_form", "no_answer", "not_object") or first is None:
        raise DataUnfit(
            f"{found.path} has no question with an answer ({clean(detail, 160) or 'no records'}): rename fields to "
            "instruction and output, prompt and completion, messages or conversations"
        )
    raise DataUnfit(f"{found.path}: of {found.records:,} records none can be used, most are {KINDS[kind]}")


def report_lines(found: Examination, width: int | None = None) -> list[str]:
    """The report as lines for a person; with `width`, folded to so many columns."""
    return lines_of_report(report_json(found), width)


def report_json(found: Examination) -> dict[str, Any]:
    """The whole report; lists of lines hold the first 50 each."""
    counted = found.counted
    return {
        "path": found.path,
        "bytes": found.source_bytes,
        "sha256": found.source_hash,
        "container": found.container,
        "forms": found.forms,
        "read": list(found.notes),
        "records": found.records,
        "left_out": _faults_json(found.faults, KINDS),
        "changed": _faults_json(found.repairs, REPAIRS),
        "unused_fields": found.unused,
        "train": len(found.train),
        "validation": len(found.validation),
        "validation_share": found.share,
        "seed": found.seed,
        "shared_questions": found.shared_questions,
        "overlap": found.overlap,
        "model": found.model,
        "max_length": found.max_length,
        "template": counted.template if counted else None,
        "end_token": counted.end_token if counted else None,
        "learnt": clean(redact(counted.learnt), 2000) if counted and counted.learnt else None,
        "template_ends_answers": counted.ends if counted else None,
        "length_tokens": _spread_json(found.lengths),
        "answer_tokens": _spread_json(found.answers),
        "tokens": sum(example.tokens or 0 for example in _usable(found)) if counted else None,
        "characters": _spread_json(found.characters),
        "first": _first(found),
        "advice": advice(found) if found.usable else [],
    }


def _usable(found: Examination) -> tuple[Example, ...]:
    return (*found.train, *found.validation)


def _first(found: Examination) -> list[dict[str, str]]:
    """The beginning of the first conversation: whether the fields became what they should, it shows at once."""
    example = min(_usable(found), key=lambda example: example.line, default=None)
    turns = example.messages[:_TURNS_KEPT] if example is not None else ()
    return [{"role": turn.role, "content": clean(redact(turn.content), _TEXT_KEPT)} for turn in turns]


def _faults_json(faults: Iterable[Fault], words: dict[FaultKind, str]) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "what": words[kind],
            "number": number,
            "lines": [fault.line for fault in faults if fault.kind == kind][:_LINES_KEPT],
            "details": [clean(redact(fault.detail), 200) for fault in faults if fault.kind == kind][:_LINES_KEPT],
        }
        for kind, number in counts(faults).items()
    ]


def _spread_json(spread: Spread | None) -> dict[str, int] | None:
    if spread is None:
        return None
    return {"median": spread.median, "p95": spread.p95, "longest": spread.longest, "total": spread.total}
