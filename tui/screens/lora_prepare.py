"""A data set from a file of conversations: the report first, then a decision."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from engine.launch.model import check_model
from engine.text import clean
from lora.data.counting import count_tokens
from lora.data.examining import Count, examine
from lora.data.records import Counted, Examination
from lora.data.report import report_json, report_lines
from lora.data.writing import NAME, name_of, write_dataset
from lora.process.training_python import TrainingPython, training_python
from lora.records import MAX_LENGTH, DataUnfit, Example
from store.database import open_writer
from store.location import database_file
from tui.legend import Number
from tui.screens.lora_looking import Looked, LookingScreen, Values


class PrepareScreen(LookingScreen):
    """As `llmtune lora prepare` does."""

    FIELDS: ClassVar[tuple[tuple[tuple[str, str, str], ...], ...]] = (
        (("file", "file", "JSON, JSON lines or CSV: alpaca, messages, ShareGPT, prompt/completion"),),
        (("model", "model", "whose tokenizer counts the tokens; empty: they are not counted"),),
        (("name", "name", "empty: the file's"), ("share", "held out", "0.1; from 0 to 0.5")),
        (("length", "longest", "tokens; 1024 with a model"), ("seed", "seed", "0; draws what is held out")),
    )
    NOTHING: ClassVar[str] = (
        "enter looks at the file: its form, what cannot be used (by line), duplicates, lengths, and how it would be "
        "split. Nothing is kept until ^s, and one question."
    )
    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("held out", "share of the conversations for validation, without a first question that is learnt, too"),
        Number("longest", "tokens of a conversation with the chat template; longer ones are left out, not cut"),
        Number("left out", "records that cannot be used, with the first lines where they stand"),
        Number("tokens", "of all that would be used, and how many of them bear loss: the answers"),
    )

    def examine(self, values: Values, width: int, on_progress: Callable[[str], None]) -> Looked:
        """Read and split the file; count its tokens where a model is named."""
        if not values["file"]:
            raise DataUnfit("no file is named: give the path of one with conversations")
        path = Path(os.path.abspath(os.path.expanduser(values["file"])))
        name = values["name"] or name_of(path)
        if not NAME.fullmatch(name) or name.isdigit() or name == "last":
            raise DataUnfit(f"name {clean(name, 80)}: use letters, digits, `.`, `_` and `-`, and not a number alone")
        share = _number(values["share"] or "0.1", "held out", 0.0, 0.5, float)
        seed = int(_number(values["seed"] or "0", "seed", 0, 2**31, int))
        limit = int(_number(values["length"], "longest", 1, 10**7, int)) if values["length"] else None
        model = values["model"] or None
        count: Count | None = None
        if model is not None:
            check_model(model)
            local = Path(model).expanduser()
            model = str(local.resolve()) if local.exists() else model
            python = training_python(None, self.app.vllm, os.environ)
            count = partial(_count, model, python, on_progress)
            limit = MAX_LENGTH if limit is None else limit
        elif limit is not None:
            raise DataUnfit("longest counts tokens: name a model, whose tokenizer counts them")
        found = examine(path, share=share, seed=seed, max_length=limit, model=model, count=count)
        lines = tuple(report_lines(found, width))
        if not found.usable:
            return Looked(lines, None)
        what = f"{len(found.train):,} train and {len(found.validation):,} validation"
        return Looked(lines, f"Keep {what} conversations as {name}?", found=(found, name))

    def keep(self, looked: Looked, values: Values) -> str:
        """Write both parts and their row."""
        found: Examination
        found, name = looked.found
        with open_writer(database_file(self.app.data_dir)) as writer:
            kept = write_dataset(self.app.data_dir, writer, found, name, report_json(found))
        return f"{clean(kept.name, 64)} is kept as data set {kept.id}: n begins a training with it"


def _count(
    model: str, python: TrainingPython, on_progress: Callable[[str], None], examples: Sequence[Example]
) -> Counted:
    on_progress(f"loading the tokenizer for {len(examples):,} conversations …")
    of = f"{len(examples):,}"
    return count_tokens(
        examples, model, python, os.environ, lambda done: on_progress(f"counting tokens: {done:,} of {of}")
    )


def _number(text: str, label: str, least: float, most: float, kind: Callable[[str], float]) -> float:
    try:
        if least <= (found := kind(text)) <= most:
            return found
    except ValueError:
        pass
    raise DataUnfit(f"{label}: {clean(text, 30)} is no number from {least:g} to {most:g}")
