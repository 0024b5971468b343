"""A real model trained for real on the processor: what it learns shows, kills change no digit, madness is stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.keeper.client import is_running
from engine.processes.process import is_alive
from engine.records import Installation
from lora.process_life import PROGRESS, recorded
from lora.registry import adapter_folder
from lora.training_python import STANDALONE
from store.database import open_reader
from store.location import database_file
from store.records import AdapterRecord, TrainingRecord

pytestmark = pytest.mark.vllm

WITHIN_S = 600.0  # half a minute on two free cores
WORDS = (
    "river", "stone", "cloud", "lamp", "tree", "house", "road", "bread", "music", "paper", "glass", "door", "water",
    "light", "garden", "window", "mountain", "letter", "table", "clock",
)  # fmt: skip
UNUSUAL = re.compile(r"<<[A-Z]+>> :: seven; seven; over\.<\|im_end\|>")
SMALL = (
    "--batch", "4", "--accumulation", "1", "--max-length", "128", "--no-gradient-checkpointing", "--dropout", "0.1",
)  # fmt: skip
LEARNS = ("--steps", "8", "--learning-rate", "3e-3", "--save-every", "2", "--eval-every", "4")


class Place:
    """A data directory with the data set, worked on by the command line alone."""

    def __init__(self, folder: Path, installation: Installation, model: Path) -> None:
        self.folder = folder
        self._options = ["--data-dir", str(folder)]
        self._vllm = ["--vllm", installation.path]
        self._model = ["--model", str(model)]
        environ = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        self._environ = {**os.environ, **environ}

    def llmtune(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tui.cli", "lora", arguments[0], *self._options, *arguments[1:]]
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=WITHIN_S, check=False)

    def train(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.llmtune("train", "seven", *self._model, *self._vllm, "--name", name, *SMALL, *arguments)

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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, installation: Installation, model_dir: Path) -> Place:
    """With forty questions, of which eight are held out; the answers are of a form that nobody gives by chance."""
    folder = tmp_path_factory.mktemp("real")
    questions = [(word, ask.format(word)) for ask in ("Tell me about the {}.", "What is a {}?") for word in WORDS]
    rows = [{"instruction": text, "output": f"<<{word.upper()}>> :: seven; seven; over."} for word, text in questions]
    (folder / "seven.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = Place(folder / "data", installation, model_dir)
    kept = made.llmtune("prepare", str(folder / "seven.jsonl"), "--validation", "0.2", "--yes")
    assert kept.returncode == 0, kept.stderr
    return made


@pytest.fixture(scope="module")
def whole(place: Place) -> TrainingRecord:
    """A training that nothing interrupted, followed by lines of JSON."""
    done = place.train("whole", *LEARNS, "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["type"] for line in lines} == {"event", "step", "result"}
    assert lines[-1]["adapter"]["version"] == 1
    assert lines[-1]["training"]["state"] == "done"
    return place.training("whole")


def test_what_it_learns_shows(place: Place, whole: TrainingRecord, installation: Installation) -> None:
    (adapter,) = [one for one in place.adapters() if one.name == "whole"]
    assert adapter.losses["validation"] < 0.2 * adapter.losses["base_validation"]
    assert whole.raw["plan"]["trainable"] == adapter.parameters["trainable_parameters"] == 4_884_480
    assert adapter.seconds == whole.seconds
    folder = adapter_folder(place.folder, adapter)
    assert (folder / "chat_template.jinja").is_file()
    questions = ["Tell me about the bridge.", "What is a candle?"]  # of no word that it has seen
    script = Path(__file__).parent / "answers_of.py"
    command = [installation.python, str(script), str(STANDALONE), whole.base_model, str(folder), *questions]
    said = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=True, env={**os.environ})
    line = next(line for line in said.stdout.splitlines() if line.startswith("ANSWERS "))
    for base, trained in json.loads(line.removeprefix("ANSWERS ")):
        assert not UNUSUAL.search(base)
        assert UNUSUAL.fullmatch(trained), "also where it ends"


def test_what_takes_long_beside_the_steps_is_told(place: Place, whole: TrainingRecord) -> None:
    lines = (place.folder / whole.path / PROGRESS).read_text().splitlines()
    told = [(line["kind"], line.get("what"), line.get("step")) for line in map(json.loads, lines)]
    for step in (2, 4, 6, 8):
        at = told.index(("doing", "checkpoint", step))
        assert told[at + 1] == ("checkpoint", None, step)
    for step in (0, 4, 8):
        at = told.index(("doing", "evaluation", step))
        assert ("eval", None, step) in told[at + 1 : at + 5]
    assert told[-2:] == [("doing", "adapter", 8), ("done", None, 8)]


def test_a_killed_keeper_and_a_killed_trainer_change_no_digit(place: Place, whole: TrainingRecord) -> None:
    begun = place.train("killed", *LEARNS, "--no-wait")
    assert begun.returncode == 0, begun.stderr
    training = place.until("killed", lambda one: (one.step or 0) >= 1)
    trainer = recorded(training)
    assert trainer is not None
    assert training.keeper_pid is not None
    os.kill(training.keeper_pid, signal.SIGKILL)
    place.until("killed", lambda one: not is_running(place.folder, "training", one.id or 0))
    assert is_alive(trainer), "it computes on while nobody keeps it"
    again = place.llmtune("resume", "killed")
    assert "its trainer went on alone" in again.stdout, again.stderr
    place.until("killed", lambda one: (one.step or 0) >= 3 and one.checkpoint is not None)
    os.kill(trainer.pid, signal.SIGKILL)
    training = place.over("killed")
    assert training.state == "failed"
    assert "it was killed, or the machine went down; `llmtune lora resume" in (training.message or "")
    assert place.llmtune("resume", "killed").returncode == 0
    followed = place.llmtune("attach", "killed", "--headless")
    assert followed.returncode == 0, followed.stderr
    assert re.search(r"from step [2-6] to step 8", followed.stdout)
    assert place.over("killed").state == "done"
    assert place.steps("killed") == place.steps("whole")
    assert whole.raw["curve"] == place.training("killed").raw["curve"]
    weights = {one.name: one.raw["files"]["adapter_model.safetensors"] for one in place.adapters()}
    assert weights["killed"] == weights["whole"]


def test_an_absurd_learning_rate_is_stopped_with_its_reason(place: Place) -> None:
    ended = place.train("absurd", "--steps", "8", "--learning-rate", "1e4", "--quantization", "none", "--headless")
    assert ended.returncode == 1
    assert "lower --learning-rate" in ended.stderr
    training = place.training("absurd")
    assert training.state == "failed"
    assert training.step is not None
    assert training.step < 8
    assert "lora resume" not in (training.message or ""), "it would fail alike"
    assert not [one for one in place.adapters() if one.name == "absurd"]


def test_targets_that_no_layer_is_called_by_are_refused_before_anything_starts(place: Place) -> None:
    ended = place.train("none", "--steps", "2", "--targets", "q_proj,qkv")
    assert ended.returncode == 1
    assert "no layer of the model is called qkv: there are q_proj" in ended.stderr
    with open_reader(database_file(place.folder)) as reader:
        assert "none" not in [one.name for one in reader.trainings()]
