"""Duplicates, and the two parts of a data set: nothing that is learnt may be asked in the validation."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lora.data.records import Fault
from lora.records import Example

_SPACE = re.compile(r"\s+")
_NO_WORD = re.compile(r"[\W_]+")


def _same(text: str) -> str:
    """Texts that differ in white space or in the form of their accents are the same."""
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def _alike(text: str) -> str:
    """Texts that differ in case and punctuation only are alike; one of nothing but punctuation is only like itself."""
    return _NO_WORD.sub("", unicodedata.normalize("NFKC", text).casefold()) or text


def without_duplicates(examples: Iterable[Example]) -> tuple[list[Example], list[Fault]]:
    """The first of each conversation, and where the others stand."""
    seen: dict[tuple[tuple[str, str], ...], int] = {}
    kept: list[Example] = []
    faults: list[Fault] = []
    for example in examples:
        key = tuple((message.role, _same(message.content)) for message in example.messages)
        if key in seen:
            faults.append(Fault(example.line, "duplicate", f"as line {seen[key]}"))
        else:
            seen[key] = example.line
            kept.append(example)
    return kept, faults


@dataclass(frozen=True, slots=True)
class Split:
    """Both parts in the order of the file. `shared` is how many begin with a question that another one begins with."""

    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    shared: int
    overlap: int


def split(examples: Sequence[Example], share: float, seed: int) -> Split:
    """About `share` (0 to 1) of the examples for validation, the same for the same seed.

    Conversations that begin with the same question, whatever its case and punctuation, stay on one side: a longer one
    may hold a shorter one whole, and one question with two answers would tell of the other. Groups are taken in the
    order of a hash of seed and question, so that a record more or another order of the file changes little. Never all,
    and at least one group where `share` is above 0 and there are two.
    """
    keys = [_alike(_first_question(example)) for example in examples]
    groups = Counter(keys)
    wanted = max(1, round(share * len(examples))) if share > 0 and len(groups) > 1 else 0
    chosen: set[str] = set()
    taken = 0
    for key in sorted(groups, key=lambda key: _order(seed, key)):
        if taken + groups[key] <= wanted:
            chosen.add(key)
            taken += groups[key]
    if wanted and not chosen:  # each group alone is larger than what is wanted
        chosen = {min(groups, key=lambda key: (groups[key], _order(seed, key)))}
    validation = tuple(example for example, key in zip(examples, keys, strict=True) if key in chosen)
    train = tuple(example for example, key in zip(examples, keys, strict=True) if key not in chosen)
    shared = sum(number for number in groups.values() if number > 1)
    return Split(train, validation, shared, _overlap(train, validation))


def _first_question(example: Example) -> str:
    return next(message.content for message in example.messages if message.role == "user")


def _order(seed: int, key: str) -> str:
    return hashlib.sha256(f"{seed}:{key}".encode()).hexdigest()


def _overlap(train: Sequence[Example], validation: Sequence[Example]) -> int:
    """Answered questions of the validation that are answered alike, later in a conversation, in the training part."""
    known = {pair for example in train for pair in _pairs(example)}
    return sum(pair in known for example in validation for pair in _pairs(example))


def _pairs(example: Example) -> list[tuple[str, str]]:
    turns = example.messages
    return [
        (_alike(question.content), _alike(answer.content))
        for question, answer in pairwise(turns)
        if answer.role == "assistant"
    ]
