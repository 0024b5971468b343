"""A data directory for evaluations under real keepers, with a stand-in for the script that measures."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from engine.keeper.client import is_running
from engine.records import ProcessIdentity
from lora.data.lines import example_line
from lora.evaluating import create_evaluation, start_evaluation
from lora.evaluation import EvaluationSettings
from lora.own_data import own_data
from lora.process_life import PROGRESS
from lora.records import Example, Message
from lora.registry import Origin, register
from lora.training_python import TrainingPython
from store.database import open_reader, open_writer
from store.evaluation_job import EvaluationJobRecord
from store.location import database_file
from store.records import AdapterRecord, EvaluationRecord, EventRecord
from tests.lora import stand_in_evaluation
from tests.lora.made_adapters import TINY_CONFIG, write_adapter

REPOSITORY = Path(__file__).resolve().parent.parent.parent
WITHIN_S = 30.0
QUESTIONS = ("one", "two", "three", "four", "five", "six")


class EvaluationWorld:
    """A data directory with the adapter `made@1`, its model, conversations, and a Python that is the stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "data"
        self.model = folder / "model"
        self.model.mkdir()
        (self.model / "config.json").write_text(json.dumps(TINY_CONFIG))
        self.python = folder / "python"
        stand_in = f'PYTHONPATH={REPOSITORY} exec {sys.executable} {stand_in_evaluation.__file__} "$@"'
        self.python.write_text(f"#!/bin/sh\n{stand_in}\n")
        self.python.chmod(0o755)
        self.file = folder / "validation.jsonl"
        examples = [
            Example((Message("user", text), Message("assistant", text.upper())), line)
            for line, text in enumerate(QUESTIONS, 1)
        ]
        self.file.write_text("".join(map(example_line, examples)))
        write_adapter(folder / "made")
        with open_writer(database_file(self.place)) as writer:
            register(writer, self.place, folder / "made", "made", Origin(base_model=str(self.model)))
        self.environ: dict[str, str] = {}
        self.play()

    def play(self, **script: object) -> None:
        self.environ = {
            **os.environ,
            "LLMTUNE_STAND_IN": json.dumps({"pace": 0.05, **script}),
            "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{os.sep}nowhere",
        }

    def adapter(self) -> AdapterRecord:
        with open_reader(database_file(self.place)) as reader:
            return reader.adapter("made@1")

    def made(self, settings: EvaluationSettings = EvaluationSettings(max_length=77)) -> int:  # noqa: B008
        with open_reader(database_file(self.place)) as reader:
            data = own_data(reader, self.place, self.adapter(), file=str(self.file))
        python = TrainingPython(str(self.python), str(self.folder))
        return create_evaluation(self.place, self.adapter(), str(self.model), data, python, settings)

    def begin(self, **script: object) -> int:
        self.play(**script)
        number = self.made()
        start_evaluation(self.place, number, self.environ)
        return number

    def job(self, number: int) -> EvaluationJobRecord:
        with open_reader(database_file(self.place)) as reader:
            return reader.evaluation_job(number)

    def results(self) -> list[EvaluationRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.evaluations()

    def events(self, number: int) -> list[EventRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.events(evaluation_id=number, limit=None)

    def said(self, number: int) -> str:
        return "\n".join(event.text for event in self.events(number))

    def progress(self, number: int) -> Path:
        return self.place / self.job(number).path / PROGRESS

    def until(self, number: int, when: Callable[[EvaluationJobRecord], bool]) -> EvaluationJobRecord:
        deadline = time.monotonic() + WITHIN_S
        while not when(job := self.job(number)):
            assert time.monotonic() < deadline, f"{job.state} after {job.done} of {job.records}: {job.message}"
            time.sleep(0.05)
        return job

    def over(self, number: int) -> EvaluationJobRecord:
        """Once it has ended, and its keeper with it."""
        job = self.until(number, lambda one: one.state in ("done", "stopped", "failed"))
        self.until(number, lambda one: not is_running(self.place, "evaluation", number))
        return job

    def process(self, number: int) -> ProcessIdentity:
        job = self.until(number, lambda one: one.pid is not None)
        assert job.pid is not None
        assert job.start_ticks is not None
        return ProcessIdentity(job.pid, job.start_ticks, job.boot_id or "")

    def kill_keeper(self, number: int) -> None:
        keeper = self.job(number).keeper_pid
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
        self.until(number, lambda one: not is_running(self.place, "evaluation", number))
