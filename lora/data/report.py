"""What was found in a file, as lines for a person and as JSON. Lines hold text of the file: cleaned, never markup."""

import textwrap
from collections.abc import Iterable
from typing import Any

from engine.text import clean
from lora.data.advice import advice
from lora.data.faults import KINDS, REPAIRS, counts, lines_text
from lora.data.records import Examination, Fault, FaultKind, Spread
from lora.records import DataUnfit

CONTAINERS = {"json": "JSON", "jsonl": "JSON lines", "csv": "CSV"}
_LINES_KEPT = 50
_WIDTH = 96  # of a turn's beginning
_INDENT, _ROLE = 12, 10  # columns


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
    """The report, indented under its first line; with `width`, folded to so many columns."""
    forms = ", ".join(found.forms) or "none"
    lines = [f"{clean(found.path)}: {found.records:,} records, {CONTAINERS[found.container]}, form {forms}"]
    rows = [("read", clean(note)) for note in found.notes]
    rows += _faults("left out", found.faults, KINDS)
    rows += _faults("changed", found.repairs, REPAIRS)
    if found.unused:
        rows.append(
            ("not used", "fields " + ", ".join(f"{name} ({n:,})" for name, n in list(found.unused.items())[:8]))
        )
    rows += _lengths(found)
    if found.usable:
        share = f"{100 * found.share:g} % wanted, seed {found.seed}"
        rows.append(("parts", f"{len(found.train):,} train, {len(found.validation):,} validation ({share})"))
        if found.shared_questions:
            rows.append(("", f"{found.shared_questions:,} share a first question with another: kept on one side"))
        room = _WIDTH if width is None else max(width - _INDENT - _ROLE, 40)
        rows += [("first" if not i else "", text) for i, text in enumerate(_first(found, room))]
        if found.counted is not None and found.counted.learnt:
            rows.append(("learnt", _ends(clean(found.counted.learnt), room)))
        rows += [("note", text) for text in advice(found)]
    said = ""
    for label, text in rows:
        folded = textwrap.wrap(text, max(width - _INDENT, 40), break_on_hyphens=False) if width else [text]
        for number, part in enumerate(folded):
            lines.append(f"  {'' if label == said or number else label:<9} {part}")
        said = label or said
    return lines


def _faults(label: str, faults: Iterable[Fault], words: dict[FaultKind, str]) -> list[tuple[str, str]]:
    rows = []
    for kind, number in counts(faults).items():
        mine = [fault for fault in faults if fault.kind == kind]
        detail = next((f"; line {fault.line}: {clean(fault.detail, 80)}" for fault in mine if fault.detail), "")
        rows.append((label, f"{number:,} {words[kind]} ({lines_text(fault.line for fault in mine)}{detail})"))
    return rows


def _lengths(found: Examination) -> list[tuple[str, str]]:
    if found.lengths is None or found.answers is None:
        return [("length", f"{_spread(found.characters)} characters")] if found.characters else []
    limit = f", limit {found.max_length:,}" if found.max_length is not None else ""
    return [
        ("length", f"{_spread(found.lengths)} tokens{limit}"),
        ("", f"{found.answers.total:,} of {tokens_of(found):,} tokens bear loss: the answers and their ends"),
    ]


def _spread(spread: Spread) -> str:
    return f"median {spread.median:,}, 95 % up to {spread.p95:,}, longest {spread.longest:,}"


def _first(found: Examination, room: int) -> list[str]:
    """The beginning of the first conversation: whether the fields became what they should, it shows at once."""
    example = min((*found.train, *found.validation), key=lambda example: example.line)
    return [f"{turn.role:<{_ROLE}}{' '.join(clean(turn.content, room).split())}" for turn in example.messages[:4]]


def _ends(text: str, room: int) -> str:
    """A text with its middle left out where it has no room: how it begins and how it ends is what counts."""
    words = " ".join(text.split())
    return words if len(words) <= room else f"{words[: room // 2 - 2]} … {words[-(room // 2 - 2) :]}"


def tokens_of(found: Examination) -> int:
    """Of all that would be used."""
    return sum(example.tokens or 0 for example in (*found.train, *found.validation))


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
        "learnt": clean(counted.learnt, 2000) if counted and counted.learnt else None,
        "template_ends_answers": counted.ends if counted else None,
        "length_tokens": _spread_json(found.lengths),
        "answer_tokens": _spread_json(found.answers),
        "tokens": tokens_of(found) if counted else None,
        "characters": _spread_json(found.characters),
        "advice": advice(found) if found.usable else [],
    }


def _faults_json(faults: Iterable[Fault], words: dict[FaultKind, str]) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "what": words[kind],
            "number": number,
            "lines": [fault.line for fault in faults if fault.kind == kind][:_LINES_KEPT],
            "details": [clean(fault.detail, 200) for fault in faults if fault.kind == kind][:_LINES_KEPT],
        }
        for kind, number in counts(faults).items()
    ]


def _spread_json(spread: Spread | None) -> dict[str, int] | None:
    if spread is None:
        return None
    return {"median": spread.median, "p95": spread.p95, "longest": spread.longest, "total": spread.total}
