"""A report as lines for a person, made of its JSON: so one that was kept with a data set reads as it did then."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from engine.text import clean
from lora.data.faults import lines_text

CONTAINERS = {"json": "JSON", "jsonl": "JSON lines", "csv": "CSV"}
_WIDTH = 108
_INDENT, _ROLE = 12, 10  # columns
_FIELDS_SHOWN = 8
_LEAST = 40  # columns of text


def lines_of_report(report: Mapping[str, Any], width: int | None = None) -> list[str]:
    """The report, indented under its first line; with `width`, folded to so many columns. What is missing in it, since
    another version wrote it, is left out."""
    forms = ", ".join(report.get("forms", ())) or "none"
    container = CONTAINERS.get(report.get("container", ""), "a file")
    lines = [f"{clean(report.get('path', ''))}: {_count(report.get('records'))} records, {container}, form {forms}"]
    room = max((width or _WIDTH) - _INDENT, _LEAST)
    said = ""
    for label, text in _rows(report, room):
        folded = textwrap.wrap(clean(text), room, break_on_hyphens=False) if width else [clean(text)]
        for number, part in enumerate(folded):
            lines.append(f"  {'' if label == said or number else label:<9} {part}".rstrip())
        said = label or said
    return lines


def _rows(report: Mapping[str, Any], room: int) -> list[tuple[str, str]]:
    """Label and text of each line; an empty label belongs to the one above."""
    rows = [("read", note) for note in report.get("read", ())]
    for label, key in (("left out", "left_out"), ("changed", "changed")):
        rows += [(label, _faults(each)) for each in report.get(key, ())]
    if unused := report.get("unused_fields"):
        names = ", ".join(f"{name} ({number:,})" for name, number in list(unused.items())[:_FIELDS_SHOWN])
        rows.append(("not used", f"fields {names}"))
    rows += _lengths(report)
    if report.get("train"):
        share = f"{100 * report.get('validation_share', 0):g} % wanted, seed {report.get('seed')}"
        rows.append(
            ("parts", f"{_count(report['train'])} train, {_count(report.get('validation'))} validation ({share})")
        )
        if shared := report.get("shared_questions"):
            rows.append(("", f"{shared:,} share a first question with another: kept on one side"))
    first = [f"{turn['role']:<{_ROLE}}{_begins(turn['content'], room - _ROLE)}" for turn in report.get("first", ())]
    rows += [("" if number else "first", text) for number, text in enumerate(first)]
    if learnt := report.get("learnt"):
        rows.append(("learnt", _ends(learnt, room)))
    return [*rows, *(("note", text) for text in report.get("advice", ()))]


def _faults(each: Mapping[str, Any]) -> str:
    lines: Sequence[int] = each["lines"]
    pairs = zip(lines, each["details"], strict=False)
    detail = next((f"; line {line}: {clean(text, 80)}" for line, text in pairs if text), "")
    return f"{each['number']:,} {each['what']} ({lines_text(lines, more=each['number'] - len(lines))}{detail})"


def _lengths(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    length, answers = report.get("length_tokens"), report.get("answer_tokens")
    if length is None or answers is None:
        characters = report.get("characters")
        return [("length", f"{_spread(characters)} characters")] if characters else []
    limit = f", limit {_count(report['max_length'])}" if report.get("max_length") is not None else ""
    learnt = f"{_count(answers['total'])} of {_count(report.get('tokens'))} tokens bear loss"
    return [("length", f"{_spread(length)} tokens{limit}"), ("", f"{learnt}: the answers and their ends")]


def _spread(spread: Mapping[str, int]) -> str:
    return f"median {spread['median']:,}, 95 % up to {spread['p95']:,}, longest {spread['longest']:,}"


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _begins(text: str, room: int) -> str:
    return clean(" ".join(clean(text).split()), room)


def _ends(text: str, room: int) -> str:
    """A text with its middle left out where it has no room: how it begins and how it ends is what counts."""
    words = " ".join(clean(text).split())
    return words if len(words) <= room else f"{words[: room // 2 - 2]} … {words[-(room // 2 - 2) :]}"
