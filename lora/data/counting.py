"""Lengths in tokens, asked of the model's tokenizer in the training Python."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lora.data.lines import example_line
from lora.data.records import Counted
from lora.process.asking import absolute_model, told_by
from lora.process.training_python import TrainingPython
from lora.records import Example, LoraError
from store.private_files import write_private

SCRIPT = "llmtune_token_lengths.py"


def count_tokens(
    examples: Sequence[Example],
    model: str,
    python: TrainingPython,
    environ: Mapping[str, str],
    on_progress: Callable[[int], None] = lambda done: None,
) -> Counted:
    """The length of each example, in their order. `on_progress` hears how many are done.

    Raises LoraError where the tokenizer cannot be loaded or its process dies.
    """
    tokenizer: dict[str, Any] | None = None
    lengths: list[tuple[int, int] | str] = []
    learnt: str | None = None
    with tempfile.TemporaryDirectory(prefix="llmtune-lengths-") as folder:  # mode 0700
        written = Path(folder) / "examples.jsonl"
        write_private(written, "".join(map(example_line, examples)))
        job = {"model": absolute_model(model), "examples": str(written)}
        for told in told_by(SCRIPT, job, python, environ):
            if told["kind"] == "tokenizer":
                tokenizer = told
            elif told["kind"] == "first":
                learnt = told["learnt"]
            else:
                lengths += [each if isinstance(each, str) else (each[0], each[1]) for each in told["lengths"]]
                on_progress(len(lengths))
    if tokenizer is None:
        raise LoraError("the tokenizer's process ended without having told anything")
    return Counted(tokenizer["template"], tokenizer["end_token"], tokenizer["ends"], tuple(lengths), learnt)
