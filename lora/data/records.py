"""A file of training data as it is read, and what is found in it, as frozen dataclasses."""

from dataclasses import dataclass
from typing import Any, Literal

from lora.records import Example

Container = Literal["json", "jsonl", "csv"]
FaultKind = Literal[
    "broken", "encoding", "not_object", "cut_off", "columns", "unknown_form", "no_answer", "empty_answer",
    "empty_question", "roles", "unknown_role", "tools", "not_text", "half_character", "preference", "duplicate",
    "too_long", "template",
    "leading_answer", "open_question",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """One object of the file, where it began (line from 1)."""

    line: int
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A record, or a part of the file, that cannot be used. `faults.KINDS` has the words of `kind`;
    `detail` says of this one what they do not."""

    line: int
    kind: FaultKind
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """A file as records. `notes` are one line each on how it was read: byte order mark, line ends, separator."""

    container: Container
    records: tuple[Record, ...]
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of one record: its form, and its conversations or why there are none. `repairs` are kinds of
    `faults.REPAIRS`: what was changed to use it. `unused` are keys that nothing was made of."""

    form: str
    examples: tuple[Example, ...] = ()
    faults: tuple[Fault, ...] = ()
    repairs: tuple[Fault, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """What the model's tokenizer says of a data set. `template` is "model" or "plain"; `ends` whether that template
    ends an answer with a token at which a server stops; `learnt` is what bears loss at the end of the first
    conversation that can be used, decoded."""

    template: str
    end_token: str
    ends: bool
    lengths: tuple[tuple[int, int] | str, ...]  # an example's tokens and those that bear loss, or why it has none
    learnt: str | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """How a length is spread over a data set."""

    median: int
    p95: int
    longest: int
    total: int


@dataclass(frozen=True, slots=True)
class Examination:
    """All that is found in a file, before anything is decided. `train` and `validation` are what would be used.

    `records` counts all that the file holds, broken ones too. `shared_questions` are examples that begin with a
    question with which another begins, too; `overlap` is how many answered questions of the validation stand in the
    training part as well. `lengths` is of all conversations in tokens, those above the limit too; `answers` (tokens
    that bear loss) and `characters` are of what would be used.
    """

    path: str
    container: Container
    forms: dict[str, int]
    notes: tuple[str, ...]
    records: int
    faults: tuple[Fault, ...]
    repairs: tuple[Fault, ...]
    unused: dict[str, int]
    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    shared_questions: int
    overlap: int
    source_hash: str
    source_bytes: int
    seed: int
    share: float
    max_length: int | None
    model: str | None
    counted: Counted | None = None
    lengths: Spread | None = None
    answers: Spread | None = None
    characters: Spread | None = None

    @property
    def usable(self) -> int:
        return len(self.train) + len(self.validation)
