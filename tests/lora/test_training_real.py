"""A real model trained for real on the processor: what it learns shows, kills change no digit, madness is stopped."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from engine.keeper.client import is_running
from engine.processes.process import is_alive
from lora.adapters.registry import adapter_folder
from lora.process.process_life import PROGRESS, recorded
from lora.standalone.llmtune_checkpoints import MARK
from store.database import open_reader
from store.location import database_file
from store.records import TrainingRecord
from tests.lora.real_place import LEARNS, WITHIN_S, RealPlace

pytestmark = pytest.mark.vllm


def test_what_it_learns_shows(real_place: RealPlace, whole: TrainingRecord) -> None:
    """Its answers are looked at where it is evaluated and served: test_served_adapters.py."""
    (adapter,) = [one for one in real_place.adapters() if one.label == "whole@1"]
    assert adapter.losses["validation"] < 0.2 * adapter.losses["base_validation"]
    assert whole.raw["plan"]["trainable"] == adapter.parameters["trainable_parameters"] == 4_884_480
    assert adapter.seconds == whole.seconds
    assert (adapter_folder(real_place.folder, adapter) / "chat_template.jinja").is_file()


def test_what_takes_long_beside_the_steps_is_told(real_place: RealPlace, whole: TrainingRecord) -> None:
    lines = (real_place.folder / whole.path / PROGRESS).read_text().splitlines()
    told = [(line["kind"], line.get("what"), line.get("step")) for line in map(json.loads, lines)]
    for step in (2, 4, 6, 8):
        at = told.index(("doing", "checkpoint", step))
        assert told[at + 1] == ("checkpoint", None, step)
    for step in (0, 4, 8):
        at = told.index(("doing", "evaluation", step))
        assert ("eval", None, step) in told[at + 1 : at + 5]
    assert told[-2:] == [("doing", "adapter", 8), ("done", None, 8)]


def kill_in_the_midst_of_a_checkpoint(pid: int, folder: Path) -> Path:
    """Kill the trainer while a checkpoint is half written; that. It is held first: else it might be whole by then."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        for half in folder.glob("checkpoint-*"):
            if (half / MARK).exists():
                continue
            os.kill(pid, signal.SIGSTOP)
            if half.is_dir() and not (half / MARK).exists():
                os.kill(pid, signal.SIGKILL)
                return half
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.002)
    raise AssertionError("no checkpoint was begun")


def test_kills_change_no_digit_and_what_is_gone_meanwhile_is_told(
    real_place: RealPlace, whole: TrainingRecord, tmp_path: Path
) -> None:
    model, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    shutil.copytree(real_place.model, model, copy_function=os.symlink)
    begun = real_place.train("killed", *LEARNS, "--no-wait", model=model)
    assert begun.returncode == 0, begun.stderr
    training = real_place.until("killed", lambda one: (one.step or 0) >= 1)
    model.rename(elsewhere)  # it is in memory, and nothing more is read of it
    trainer = recorded(training)
    assert trainer is not None
    assert training.keeper_pid is not None
    os.kill(training.keeper_pid, signal.SIGKILL)
    real_place.until("killed", lambda one: not is_running(real_place.folder, "training", one.id or 0))
    assert is_alive(trainer), "it computes on while nobody keeps it"
    again = real_place.llmtune("resume", "killed")
    assert "its trainer went on alone" in again.stdout, again.stderr
    training = real_place.until("killed", lambda one: one.checkpoint is not None)
    folder = real_place.folder / training.path
    half = kill_in_the_midst_of_a_checkpoint(trainer.pid, folder)
    training = real_place.over("killed")
    assert training.state == "failed"
    assert "it was killed, or the machine went down; `llmtune lora resume" in (training.message or "")
    assert training.checkpoint != str(half)

    def refused(*said: str) -> bool:
        ended = real_place.llmtune("resume", "killed")
        return ended.returncode == 1 and all(each in ended.stderr for each in said) and ended.stderr.count("\n") == 1

    assert refused(f"the base {model} is gone since training {training.id} began: put it back")
    elsewhere.rename(model)
    data = real_place.folder / "datasets"
    data.rename(tmp_path / "datasets")
    assert refused("dataset 1 cannot be read", "No such file or directory", "prepare it again")
    (tmp_path / "datasets").rename(data)
    assert real_place.llmtune("resume", "killed").returncode == 0
    followed = real_place.llmtune("attach", "killed", "--headless")
    assert followed.returncode == 0, followed.stderr
    assert re.search(r"from step [2-6] to step 8", followed.stdout)
    assert real_place.over("killed").state == "done"
    assert real_place.steps("killed") == real_place.steps("whole")
    assert whole.raw["curve"] == real_place.training("killed").raw["curve"]
    weights = {one.label: one.raw["files"]["adapter_model.safetensors"] for one in real_place.adapters()}
    assert weights["killed@1"] == weights["whole@1"]


def test_an_absurd_learning_rate_is_stopped_with_its_reason(real_place: RealPlace) -> None:
    ended = real_place.train("absurd", "--steps", "8", "--learning-rate", "1e4", "--quantization", "none", "--headless")
    assert ended.returncode == 1
    assert "lower --learning-rate" in ended.stderr
    training = real_place.training("absurd")
    assert training.state == "failed"
    assert training.step is not None
    assert training.step < 8
    assert "lora resume" not in (training.message or ""), "it would fail alike"
    assert not [one for one in real_place.adapters() if one.name == "absurd"]


def test_targets_that_no_layer_is_called_by_are_refused_before_anything_starts(real_place: RealPlace) -> None:
    ended = real_place.train("none", "--steps", "2", "--targets", "q_proj,qkv")
    assert ended.returncode == 1
    assert "no layer of the model is called qkv: there are q_proj" in ended.stderr
    with open_reader(database_file(real_place.folder)) as reader:
        assert "none" not in [one.name for one in reader.trainings()]
