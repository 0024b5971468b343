"""One life of a process that computes for a keeper (a trainer, an evaluation): a script in the training Python, found
again by what is recorded of it. It writes what it does into a file, and outlives whoever started it."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from engine.processes.process import MARKER_VARIABLE, identify, is_alive, send_signal
from engine.records import ProcessIdentity
from engine.stop import StopReport, end_leftovers, reap_children
from engine.text import clean
from lora.process.training_python import STANDALONE, TrainingPython
from lora.records import LoraError
from store.private_files import make_private_folder, open_private, write_private

JOB, PROGRESS = "job.json", "progress.jsonl"
LAST_WORDS_BYTES = 16_384


class Recorded(Protocol):
    """What the row of a training or an evaluation holds of its process."""

    @property
    def pid(self) -> int | None: ...
    @property
    def start_ticks(self) -> int | None: ...
    @property
    def boot_id(self) -> str | None: ...
    @property
    def marker(self) -> str: ...


def start_script(
    script: str,
    folder: Path,
    log_name: str,
    job: Mapping[str, Any],
    python: TrainingPython,
    marker: str,
    environ: Mapping[str, str],
) -> "subprocess.Popen[bytes]":
    """The script of `lora/standalone` in a session of its own, its job and its log in `folder`. Raises LoraError."""
    try:
        make_private_folder(folder)
        write_private(folder / JOB, json.dumps(job))
        log = open_private(folder / log_name)
    except OSError as error:
        raise LoraError(f"{folder} cannot be written: {error.strerror}") from None
    try:
        return subprocess.Popen(
            [python.python, str(STANDALONE / script), str(folder / JOB)],
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


def recorded(row: Recorded) -> ProcessIdentity | None:
    """The process as a keeper recorded it."""
    if row.pid is None or row.start_ticks is None:
        return None
    return ProcessIdentity(row.pid, row.start_ticks, row.boot_id or "")


class Life:
    """A process that runs: a child of ours, or one that an earlier keeper left and that went on alone."""

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
    def left(cls, row: Recorded) -> "Life | None":
        """The one that an earlier keeper started, if it still runs."""
        identity = recorded(row)
        return cls(identity, row.marker, None) if identity is not None and is_alive(identity) else None

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
        """It ends in good order: a trainer writes a checkpoint after the step in hand."""
        send_signal(self.identity, signal.SIGTERM)

    async def end(self, grace_s: float = 10.0) -> StopReport:
        """End it and all that it started, now."""
        report = await end_leftovers(self.identity, self.identity.pid, self._marker, [], grace_s)
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)
        return report


def last_words(log: Path) -> str:
    """The last line of a log that says something, "" where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_WORDS_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return clean(next((line for line in reversed(lines) if line.strip()), ""), 300)
