"""One life of a trainer: its process, found again by what is recorded of it, and what it tells."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.processes.process import MARKER_VARIABLE, identify, is_alive, send_signal
from engine.records import ProcessIdentity
from engine.stop import StopReport, end_leftovers, reap_children
from engine.text import clean
from lora.records import LoraError, TrainingSettings
from lora.training_python import STANDALONE, TrainingPython
from store.private_files import make_private_folder, open_private, write_private
from store.records import TrainingRecord

SCRIPT = STANDALONE / "llmtune_trainer.py"
JOB, PROGRESS, LOG = "job.json", "progress.jsonl", "trainer.log"
ADAPTER = "adapter"

# A checkpoint is written at the end of the step in hand: minutes for a large one on a slow disk.
STOP_WITHIN_S = 600.0
LAST_WORDS_BYTES = 16_384


def job_of(training: TrainingRecord, folder: Path, data: Path, settings: TrainingSettings) -> dict[str, Any]:
    """What the trainer is told; `data` is the folder of the data set."""
    return {
        "model": settings.base_model,
        "train": str(data / "train.jsonl"),
        "validation": str(data / "validation.jsonl"),
        "output": str(folder),
        "progress": str(folder / PROGRESS),
        "seconds_before": training.seconds or 0.0,
        "settings": asdict(settings),
    }


def start_trainer(
    folder: Path, job: Mapping[str, Any], python: TrainingPython, marker: str, environ: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """The trainer in a session of its own, its output in the training's log. It outlives whoever starts it. Raises
    LoraError."""
    try:
        make_private_folder(folder)
        write_private(folder / JOB, json.dumps(job))
        log = open_private(folder / LOG)
    except OSError as error:
        raise LoraError(f"{folder} cannot be written: {error.strerror}") from None
    try:
        return subprocess.Popen(
            [python.python, str(SCRIPT), str(folder / JOB)],
            env=python.environ(environ) | {MARKER_VARIABLE: marker, "SPT_NOENV": "1"},
            cwd="/",  # the folder that we were started in must not hide a package of theirs
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as error:
        raise LoraError(f"{python.python} does not start ({error.strerror}): give --python another") from None
    finally:
        os.close(log)


def recorded(training: TrainingRecord) -> ProcessIdentity | None:
    """The trainer's process as a keeper recorded it."""
    if training.pid is None or training.start_ticks is None:
        return None
    return ProcessIdentity(training.pid, training.start_ticks, training.boot_id or "")


class Life:
    """A trainer that runs: a child of ours, or one that an earlier keeper left and that went on alone."""

    def __init__(self, identity: ProcessIdentity, marker: str, process: "subprocess.Popen[bytes] | None") -> None:
        self.identity = identity
        self._marker = marker
        self._process = process

    @classmethod
    def of_child(cls, process: "subprocess.Popen[bytes]", marker: str) -> "Life | None":
        """None where it has ended already."""
        identity = identify(process.pid)
        return None if identity is None else cls(identity, marker, process)

    @classmethod
    def left(cls, training: TrainingRecord) -> "Life | None":
        """The one that an earlier keeper started, if it still runs."""
        identity = recorded(training)
        return cls(identity, training.marker, None) if identity is not None and is_alive(identity) else None

    def running(self) -> bool:
        if self._process is not None:
            return self._process.poll() is None
        reap_children([self.identity])
        return is_alive(self.identity)

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and of one that was no child of ours."""
        return None if self._process is None else self._process.poll()

    def ask_to_stop(self) -> None:
        """It writes a checkpoint after the step in hand, and ends."""
        send_signal(self.identity, signal.SIGTERM)

    async def end(self, grace_s: float = 10.0) -> StopReport:
        """End it and all that it started, now."""
        report = await end_leftovers(self.identity, self.identity.pid, self._marker, [], grace_s)
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)
        return report


def last_words(folder: Path) -> str:
    """The last line of the trainer's log that says something, "" where there is none."""
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return clean(next((line for line in reversed(lines) if line.strip()), ""), 300)
