"""A data directory for trainings under real keepers, with a stand-in for the trainer."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from engine.keeper.client import is_running
from engine.records import ProcessIdentity
from lora.data.writing import data_hash
from lora.records import TrainingSettings
from lora.training import create_training, start_keeper
from lora.training_python import TrainingPython
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import AdapterRecord, DatasetRecord, EventRecord, TrainingRecord
from tests.lora import stand_in_trainer
from tests.lora.made_adapters import TINY_CONFIG

REPOSITORY = Path(__file__).resolve().parent.parent.parent
WITHIN_S = 30.0


class World:
    """A data directory with a data set, a model, and a Python that is the stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "data"
        self.model = folder / "model"
        self.model.mkdir()
        (self.model / "config.json").write_text(json.dumps(TINY_CONFIG))
        python = folder / "python"
        stand_in = f'PYTHONPATH={REPOSITORY} exec {sys.executable} {stand_in_trainer.__file__} "$@"'
        python.write_text(f"#!/bin/sh\n{stand_in}\n")
        python.chmod(0o755)
        self.python = TrainingPython(str(python), str(folder))
        self.dataset = self._dataset()
        self.environ: dict[str, str] = {}
        self.play()

    def play(self, **script: object) -> None:
        text = json.dumps({"steps": 8, "pace": 0.05, **script})
        self.environ = {
            **os.environ,
            "LLMTUNE_STAND_IN": text,
            "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{os.sep}nowhere",
        }

    def _dataset(self) -> DatasetRecord:
        texts = {"train.jsonl": '{"messages": []}\n', "validation.jsonl": ""}
        folder = self.place / "datasets" / "1-seven"
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
        record = DatasetRecord("seven", "datasets/1-seven", data_hash(texts), 1, 0, 0, utc_now())
        with open_writer(database_file(self.place)) as writer:
            number = writer.insert(record)
        with open_reader(database_file(self.place)) as reader:
            return reader.dataset(number)

    def begin(self, **script: object) -> int:
        self.play(**script)
        settings = TrainingSettings(str(self.model), 1, epochs=None, steps=8)
        number = create_training(self.place, self.dataset, settings, self.python)
        start_keeper(self.place, number, self.environ)
        return number

    def training(self, number: int) -> TrainingRecord:
        with open_reader(database_file(self.place)) as reader:
            return reader.training(number)

    def events(self, number: int) -> list[EventRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.events(training_id=number, limit=None)

    def said(self, number: int) -> str:
        return "\n".join(event.text for event in self.events(number))

    def adapters(self) -> list[AdapterRecord]:
        with open_reader(database_file(self.place)) as reader:
            return reader.adapters()

    def until(self, number: int, when: Callable[[TrainingRecord], bool]) -> TrainingRecord:
        deadline = time.monotonic() + WITHIN_S
        while not when(training := self.training(number)):
            assert time.monotonic() < deadline, f"{training.state} at step {training.step}: {training.message}"
            time.sleep(0.05)
        return training

    def over(self, number: int) -> TrainingRecord:
        """Once it has ended, and its keeper with it."""
        training = self.until(number, lambda one: one.state in ("done", "stopped", "failed"))
        self.until(number, lambda one: not is_running(self.place, "training", number))
        return training

    def kill_keeper(self, number: int) -> None:
        keeper = self.training(number).keeper_pid
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
        self.until(number, lambda one: not is_running(self.place, "training", number))

    def trainer(self, number: int) -> ProcessIdentity:
        training = self.until(number, lambda one: one.pid is not None)
        assert training.pid is not None
        assert training.start_ticks is not None
        return ProcessIdentity(training.pid, training.start_ticks, training.boot_id or "")
