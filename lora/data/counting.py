"""Lengths in tokens, asked of the model's tokenizer in the training Python."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from engine.text import clean
from lora.data.lines import example_line
from lora.data.records import Counted
from lora.records import Example, LoraError
from lora.training_python import STANDALONE, TrainingPython
from store.private_files import write_private

SCRIPT = STANDALONE / "llmtune_token_lengths.py"


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
    with tempfile.TemporaryDirectory(prefix="llmtune-lengths-") as folder:  # mode 0700
        place = Path(folder)
        write_private(place / "examples.jsonl", "".join(map(example_line, examples)))
        job = {"model": _absolute(model), "examples": str(place / "examples.jsonl")}
        write_private(place / "job.json", json.dumps(job))
        with open(place / "errors", "w+", encoding="utf-8", errors="replace") as errors:
            return _ask(place / "job.json", python, environ, errors, on_progress)


def _ask(
    job: Path,
    python: TrainingPython,
    environ: Mapping[str, str],
    errors: IO[str],
    on_progress: Callable[[int], None],
) -> Counted:
    try:
        process = subprocess.Popen(
            [python.python, str(SCRIPT), str(job)],
            env=python.environ(environ),
            cwd="/",  # the folder that we were started in must not hide a package of theirs
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        )
    except OSError as error:
        raise LoraError(f"{python.python} does not start ({error.strerror}): give --python another") from None
    tokenizer: dict[str, Any] | None = None
    lengths: list[tuple[int, int] | str] = []
    learnt: str | None = None
    done = False
    try:
        assert process.stdout is not None
        for told in _told(process.stdout):
            if told["kind"] == "tokenizer":
                tokenizer = told
            elif told["kind"] == "failed":
                raise LoraError(clean(str(told["why"]), 300))
            elif told["kind"] == "first":
                learnt = told["learnt"]
            elif told["kind"] == "done":
                done = True
            else:
                lengths += [each if isinstance(each, str) else (each[0], each[1]) for each in told["lengths"]]
                on_progress(len(lengths))
        process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if tokenizer is None or not done:
        raise LoraError(_died(python, process.returncode, errors))
    return Counted(tokenizer["template"], tokenizer["end_token"], tokenizer["ends"], tuple(lengths), learnt)


def _told(lines: IO[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.endswith("\n"):  # one that is cut off comes from a process that was killed
            yield json.loads(line)


def _died(python: TrainingPython, code: int, errors: IO[str]) -> str:
    errors.seek(0)
    last = next((line.strip() for line in reversed(errors.read().splitlines()) if line.strip()), "")
    if "No module named" in last:
        return f"{python.python} cannot count tokens ({clean(last, 100)}): give --python one that has transformers"
    return f"the tokenizer's process ended with status {code}: {clean(last, 200) or 'it said nothing'}"


def _absolute(model: str) -> str:
    path = Path(model).expanduser()
    return str(path.resolve()) if path.exists() else model
