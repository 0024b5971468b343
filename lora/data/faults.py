"""What can be wrong with a record, in the words of the report."""

from collections.abc import Iterable

from lora.data.records import Fault, FaultKind

KINDS: dict[FaultKind, str] = {
    "broken": "broken: no JSON",
    "encoding": "not UTF-8",
    "not_object": "no object with named fields",
    "cut_off": "the file breaks off, what follows is lost",
    "columns": "more or fewer fields than the header names",
    "unknown_form": "of no known form",
    "no_answer": "without an answer to learn from",
    "empty_answer": "with an empty answer",
    "empty_question": "with an empty question",
    "roles": "with roles out of order",
    "unknown_role": "with a role other than system, user and assistant",
    "tools": "with calls of tools, which are not learnt from",
    "not_text": "with content that is no text",
    "half_character": "with half a character (a lone surrogate)",
    "preference": "of a preference (chosen and rejected), which is no example to imitate",
    "duplicate": "said before, word for word",
    "too_long": "longer than the limit",
    "template": "that the model's template does not show",
}
"""Kinds of faults: a record with one is left out. In the order of the report; each follows a number of records."""

REPAIRS: dict[FaultKind, str] = {
    "leading_answer": "begin with an answer: it is left off",
    "open_question": "end with a question: it is left off",
}
"""What is changed so that a record can be used."""


def counts(faults: Iterable[Fault]) -> dict[FaultKind, int]:
    """How many there are of each kind, in the order of `KINDS` and `REPAIRS`; kinds without one are left out."""
    found = [fault.kind for fault in faults]
    return {kind: number for kind in (*KINDS, *REPAIRS) if (number := found.count(kind))}


def lines_text(lines: Iterable[int], *, more: int = 0, shown: int = 5) -> str:
    """`line 7`, `lines 7, 9` or `lines 7, 9, 12, 13, 40 and 63 more`, each line once; `more` are not in `lines`."""
    ordered = sorted(set(lines))
    if not ordered:
        return ""
    text = ", ".join(f"{line}" for line in ordered[:shown])
    left = max(len(ordered) - shown, 0) + more
    return f"{'line' if len(ordered) + more == 1 else 'lines'} {text}{f' and {left:,} more' if left else ''}"
