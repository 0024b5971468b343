"""Asking a script of `lora/standalone` in the training Python: one JSON job, JSON lines in answer."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from engine.text import clean
from lora.process.training_python import STANDALONE, TrainingPython
from lora.records import LoraError
from store.private_files import write_private


def told_by(
    script: str, job: Mapping[str, Any], python: TrainingPython, environ: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """What `script` tells, line by line, without its last `done`. Whoever stops reading ends it.

    Raises LoraError with what it says as it fails, or where it dies without having said so.
    """
    with tempfile.TemporaryDirectory(prefix="llmtune-lora-") as folder:  # mode 0700
        place = Path(folder)
        write_private(place / "job.json", json.dumps(job))
        with open(place / "errors", "w+", encoding="utf-8", errors="replace") as errors:
            process = _start(script, place / "job.json", python, environ, errors)
            try:
                assert process.stdout is not None
                yield from _lines(process.stdout, process, python, errors)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


def absolute_model(model: str) -> str:
    """A model's folder as seen from anywhere; a hub name as it is."""
    path = Path(model).expanduser()
    return str(path.resolve()) if path.exists() else model


def _start(
    script: str, job: Path, python: TrainingPython, environ: Mapping[str, str], errors: IO[str]
) -> "subprocess.Popen[str]":
    try:
        return subprocess.Popen(
            [python.python, str(STANDALONE / script), str(job)],
            env=python.environ(environ),
            cwd="/",  # the folder that we were started in must not hide a package of theirs
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        )
    except OSError as error:
        raise LoraError(f"{python.python} does not start ({error.strerror}): give --python another") from None


def _lines(
    lines: IO[str], process: "subprocess.Popen[str]", python: TrainingPython, errors: IO[str]
) -> Iterator[dict[str, Any]]:
    for line in lines:
        if not line.endswith("\n"):  # cut off: it was killed
            break
        told: dict[str, Any] = json.loads(line)
        if told["kind"] == "failed":
            raise LoraError(clean(str(told["why"]), 300))
        if told["kind"] == "done":
            return
        yield told
    raise LoraError(_died(python, process.wait(), errors))


def _died(python: TrainingPython, code: int, errors: IO[str]) -> str:
    errors.seek(0)
    last = next((line.strip() for line in reversed(errors.read().splitlines()) if line.strip()), "")
    if "No module named" in last:
        lacks = clean(last, 100)
        return f"{python.python} lacks a library ({lacks}): give --python one that has torch, transformers and peft"
    if code == -9:
        return "its process was killed: most likely the machine's memory ran out"
    return f"its process ended with status {code}: {clean(last, 200) or 'it said nothing'}"
