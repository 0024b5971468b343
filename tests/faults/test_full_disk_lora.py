"""A disk that is really full while a training keeps something: one line says so, and it goes on when space returns."""

import json
import os
from pathlib import Path

import pytest

from engine.processes.process import is_alive
from engine.records import Installation
from lora.adapters.registry import FOLDER, require_unchanged
from lora.standalone.llmtune_checkpoints import MARK
from lora.trainings.training import start_keeper
from lora.trainings.training_life import ADAPTER
from tests.faults.conftest import MakeDisk
from tests.faults.filling import fill
from tests.lora.real_place import RealPlace
from tests.lora.training_world import World

KIB = 1024
FULL = "the disk takes nothing more"


@pytest.mark.faults
def test_an_adapter_that_cannot_be_kept_is_kept_once_there_is_space(make_disk: MakeDisk) -> None:
    disk = make_disk(8)
    world = World(disk)
    number = world.begin(pace=0.1, rank=4096)
    trainer = world.trainer(number)
    world.kill_keeper(number)
    world.until(number, lambda one: not is_alive(trainer))  # it was done while nobody kept it
    folder = world.place / world.training(number).path / ADAPTER
    size = sum(entry.stat().st_size for entry in folder.iterdir())
    assert size > 1200 * KIB
    fill(disk / "filler", leave=800 * KIB)  # for the database, not for a copy of that
    start_keeper(world.place, number, world.environ)
    training = world.over(number)
    assert training.state == "failed"
    shelf = world.place / FOLDER / "model-seven"
    assert training.message == (
        f"it is trained, but its adapter is not kept: the adapter cannot be kept in {shelf}: No space left on device; "
        f"`llmtune lora resume {number}` tries again"
    )
    assert world.adapters() == []
    assert list(shelf.iterdir()) == [], "no half of it stays"
    (disk / "filler").unlink()
    start_keeper(world.place, number, world.environ)
    assert world.over(number).state == "done"
    (adapter,) = world.adapters()
    require_unchanged(world.place, adapter)


@pytest.mark.vllm
def test_a_checkpoint_that_finds_no_space_is_told_and_made_again(
    make_disk: MakeDisk, tmp_path: Path, installation: Installation, model_dir: Path
) -> None:
    """The real trainer: torch and safetensors write its checkpoints."""
    disk = make_disk(64)
    place = RealPlace(disk / "data", installation, model_dir)
    place.prepare(tmp_path / "seven.jsonl")
    few = ("--steps", "6", "--save-every", "3", "--eval-every", "6", "--targets", "q_proj,v_proj", "--r", "4")
    begun = place.train("full", *few, "--quantization", "none", "--no-wait")
    assert begun.returncode == 0, begun.stderr
    training = place.until("full", lambda one: one.checkpoint is not None)
    fill(disk / "filler", leave=1500 * KIB)  # a checkpoint has 2.8 MB
    training = place.over("full")
    assert training.state == "failed", training.message
    assert FULL in (training.message or "")
    assert f"free some, then resume it; `llmtune lora resume {training.id}` goes on" in (training.message or "")
    folder = disk / "data" / training.path
    assert [entry.name for entry in folder.glob("checkpoint-*")] == ["checkpoint-3"], "the half one makes room"
    assert (folder / "checkpoint-3" / MARK).is_file()
    last = json.loads((folder / "progress.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["class"]) == ("failed", "disk")
    os.unlink(disk / "filler")
    assert place.llmtune("resume", "full").returncode == 0
    training = place.over("full")
    assert (training.state, training.step) == ("done", 6)
    assert [step for step, _ in training.raw["curve"]] == [1, 2, 3, 4, 5, 6]
