"""Which training or evaluation a person means, for `llmtune lora attach|stop|resume`."""

from typing import TYPE_CHECKING

from lora.process.work import Work, WorkKind

if TYPE_CHECKING:
    from store.reader import Reader

PREFIX = "eval:"


def meant(reader: "Reader", word: str) -> tuple[WorkKind, Work]:
    """A training's number, name or `last`; `eval:NUMBER`, `eval:last` or the label of an adapter (it has an @, which no
    name has) for an evaluation. Raises NotFound."""
    text = word.strip()
    if text.startswith(PREFIX) or "@" in text:
        return "evaluation", reader.evaluation_job(text.removeprefix(PREFIX))
    return "training", reader.training(text)


def word_of(kind: WorkKind, number: int | None) -> str:
    """By which the commands know it again."""
    return f"{PREFIX}{number}" if kind == "evaluation" else str(number)
