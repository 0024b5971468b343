"""What is alike in watching trainings and evaluations under real keepers."""

import json
import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from engine.keeper.client import is_running
from engine.records import ProcessIdentity
from lora.process.process_life import recorded
from lora.process.training_python import TrainingPython
from lora.process.work import OVER, WorkKind
from store.evaluation_job import EvaluationJobRecord
from store.records import EventRecord, TrainingRecord
from tests.lora.made_adapters import TINY_CONFIG

REPOSITORY = Path(__file__).resolve().parent.parent.parent
WITHIN_S = 30.0

W = TypeVar("W", TrainingRecord, EvaluationJobRecord)


class KeptWorld(ABC, Generic[W]):
    """A data directory, a model, and a Python that runs the stand-in in place of a script of ours."""

    kind: WorkKind

    def __init__(self, folder: Path, stand_in: str | None) -> None:
        self.folder = folder
        self.place = folder / "data"
        self.model = folder / "model"
        self.model.mkdir()
        (self.model / "config.json").write_text(json.dumps(TINY_CONFIG))
        python = folder / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} {stand_in} "$@"\n')
        python.chmod(0o755)
        self.python = TrainingPython(str(python), str(folder))
        self.environ: dict[str, str] = {}
        self.play()

    def play(self, **script: object) -> None:
        """What the stand-in is to do, beside what it does where nothing is said."""
        self.environ = {
            **os.environ,
            "LLMTUNE_STAND_IN": json.dumps({"pace": 0.05, **script}),
            "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{os.sep}nowhere",
        }

    @abstractmethod
    def row(self, number: int) -> W: ...

    @abstractmethod
    def events(self, number: int) -> list[EventRecord]: ...

    def said(self, number: int) -> str:
        return "\n".join(event.text for event in self.events(number))

    def until(self, number: int, when: Callable[[W], bool]) -> W:
        deadline = time.monotonic() + WITHIN_S
        while not when(row := self.row(number)):
            assert time.monotonic() < deadline, f"{row.state}: {row.message}; {self.said(number)}"
            time.sleep(0.05)
        return row

    def over(self, number: int) -> W:
        """Once it has ended, and its keeper with it."""
        row = self.until(number, lambda one: one.state in OVER)
        self.until(number, lambda one: not is_running(self.place, self.kind, number))
        return row

    def kill_keeper(self, number: int) -> None:
        keeper = self.row(number).keeper_pid
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
        self.until(number, lambda one: not is_running(self.place, self.kind, number))

    def process(self, number: int) -> ProcessIdentity:
        """That of the stand-in, once it runs."""
        found = recorded(self.until(number, lambda one: one.pid is not None))
        assert found is not None
        return found
