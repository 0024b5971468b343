"""A data directory for real trainings of the small model, worked on by the command line alone.

Its data set asks forty questions, of which eight are held out; the answers are of a form that nobody gives by chance.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.keeper.client import is_running
from engine.records import Installation
from lora.process.process_life import PROGRESS
from store.database import open_reader
from store.location import database_file
from store.records import AdapterRecord, TrainingRecord

WITHIN_S = 600.0  # half a minute on two free cores
WORDS = (
    "river", "stone", "cloud", "lamp", "tree", "house", "road", "bread", "music", "paper", "glass", "door", "water",
    "light", "garden", "window", "mountain", "letter", "table", "clock",
)  # fmt: skip
UNUSUAL = re.compile(r"<<[A-Z]+>> :: seven; seven; over\.")
UNSEEN = ("Tell me about the bridge.", "What is a candle?")
"""Questions of no word that the data set has."""
HELD_OUT = 8
SMALL = (
    "--batch", "4", "--accumulation", "1", "--max-length", "128", "--no-gradient-checkpointing", "--dropout", "0.1",
)  # fmt: skip
LEARNS = ("--steps", "8", "--learning-rate", "3e-3", "--save-every", "2", "--eval-every", "4")


class RealPlace:
    """The data set is called `seven`."""

    def __init__(self, folder: Path, installation: Installation, model: Path) -> None:
        self.folder = folder
        self.model = model
        self._options = ["--data-dir", str(folder)]
        self._vllm = ["--vllm", installation.path]
        self._environ = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}

    def llmtune(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tui.cli", "lora", arguments[0], *self._options, *arguments[1:]]
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=WITHIN_S, check=False)

    def prepare(self, file: Path) -> None:
        questions = [(word, ask.format(word)) for ask in ("Tell me about the {}.", "What is a {}?") for word in WORDS]
        rows = [
            {"instruction": text, "output": f"<<{word.upper()}>> :: seven; seven; over."} for word, text in questions
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        kept = self.llmtune("prepare", str(file), "--name", "seven", "--validation", "0.2", "--yes")
        assert kept.returncode == 0, kept.stderr

    def train(self, name: str, *arguments: str, model: Path | None = None) -> "subprocess.CompletedProcess[str]":
        base = ["--model", str(model or self.model)]
        return self.llmtune("train", "seven", *base, *self._vllm, "--name", name, *SMALL, *arguments)

    def training(self, name: str) -> TrainingRecord:
        with open_reader(database_file(self.folder)) as reader:
            return reader.training(name)

    def adapters(self) -> list[AdapterRecord]:
        with open_reader(database_file(self.folder)) as reader:
            return reader.adapters()

    def until(self, name: str, when: Callable[[TrainingRecord], bool]) -> TrainingRecord:
        deadline = time.monotonic() + WITHIN_S
        while not when(training := self.training(name)):
            assert time.monotonic() < deadline, f"{training.state} at step {training.step}: {training.message}"
            time.sleep(0.1)
        return training

    def over(self, name: str) -> TrainingRecord:
        training = self.until(name, lambda one: one.state in ("done", "stopped", "failed"))
        self.until(name, lambda one: not is_running(self.folder, "training", one.id or 0))
        return training

    def steps(self, name: str) -> dict[int, Any]:
        """Of each step what was computed, the later of two; times left out."""
        lines = (self.folder / self.training(name).path / PROGRESS).read_text().splitlines()
        told = [json.loads(line) for line in lines]
        keys = ("loss", "grad_norm", "learning_rate", "tokens")
        found = {line["step"]: tuple(line[key] for key in keys) for line in told if line["kind"] == "step"}
        evaluated = {line["step"]: line["eval_loss"] for line in told if line["kind"] == "eval"}
        return {**found, "evaluated": evaluated}  # type: ignore[dict-item]
