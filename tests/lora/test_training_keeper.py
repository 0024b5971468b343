"""Trainings under real keepers, with a stand-in for the trainer: what is killed, and by whom, and what goes on."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

import lora.keeper
import lora.process.process_keeper
from engine.keeper.client import call
from engine.preflight.ours import read_ours
from engine.processes.process import is_alive, marked
from engine.records import EngineError
from lora.process.process_life import PROGRESS
from lora.records import LoraError, TrainingSettings
from lora.trainings.training import DataChanged, create_training, start_keeper, stop_training
from lora.trainings.training_life import LOG
from store.database import open_reader, open_writer
from store.location import database_file
from tests.lora.full_writer import Full
from tests.lora.training_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_one_that_ends_well_is_registered_with_what_is_known_of_it(world: World) -> None:
    number = world.begin()
    training = world.over(number)
    assert (training.state, training.message) == ("done", "adapter model-seven@1")
    assert (training.step, training.steps, training.loss, training.eval_loss) == (8, 8, 0.125, 0.5)
    assert training.raw["curve"] == [[step, round(1 / step, 5)] for step in range(1, 9)]
    assert training.raw["evals"] == [[0, 2.0], [8, 0.5]]
    (adapter,) = world.adapters()
    assert adapter.label == "model-seven@1"
    assert adapter.training_id == number
    assert adapter.losses == {"train": 0.125, "validation": 0.5, "base_validation": 2.0}
    assert adapter.data_hash == world.dataset.data_hash
    assert adapter.base_hash is not None
    assert (world.place / training.path / PROGRESS).stat().st_mode & 0o077 == 0
    assert "the adapter is registered as model-seven@1" in world.said(number)
    assert not marked(training.marker)
    with pytest.raises(LoraError, match="is done"):
        start_keeper(world.place, number, world.environ)


def test_a_trainer_that_is_killed_goes_on_from_its_checkpoint(world: World) -> None:
    number = world.begin(at={"6": "kill"}, once=str(world.folder / "once"))
    training = world.over(number)
    assert training.state == "failed"
    assert training.message is not None
    assert "the trainer died at step 5" in training.message
    assert f"`llmtune lora resume {number}` goes on from its checkpoint" in training.message
    start_keeper(world.place, number, world.environ)
    training = world.over(number)
    assert training.state == "done"
    assert [point[0] for point in training.raw["curve"]] == list(range(1, 9))
    assert "from step 4 to step 8" in world.said(number)
    assert training.raw["evals"][0] == [0, 2.0]


def test_a_trainer_that_is_killed_in_the_midst_of_a_checkpoint_goes_on_from_the_one_before(world: World) -> None:
    number = world.begin(at={"6": "half"}, once=str(world.folder / "once"))
    training = world.over(number)
    assert training.state == "failed"
    assert "the trainer died at step 6" in (training.message or "")
    assert (training.checkpoint or "").endswith("checkpoint-4")
    assert (world.place / training.path / "checkpoint-6").is_dir(), "half of it"
    start_keeper(world.place, number, world.environ)
    training = world.over(number)
    assert training.state == "done"
    assert "from step 4 to step 8" in world.said(number)
    assert [point[0] for point in training.raw["curve"]] == list(range(1, 9))


def test_a_keeper_that_is_killed_leaves_a_trainer_that_the_next_one_follows(world: World) -> None:
    number = world.begin(pace=0.3)
    trainer = world.trainer(number)
    world.until(number, lambda one: (one.step or 0) >= 2)
    world.kill_keeper(number)
    assert is_alive(trainer)
    (seen,) = read_ours(world.place).lora
    assert (seen.pids, seen.kept) == ((trainer.pid,), False)
    assert trainer.pid not in read_ours(world.place).strangers
    start_keeper(world.place, number, world.environ)
    assert world.trainer(number) == trainer
    assert world.over(number).state == "done"
    assert "follows the trainer that went on alone" in world.said(number)
    assert len(world.adapters()) == 1


def test_a_trainer_that_ended_alone_is_registered_by_the_next_keeper(world: World) -> None:
    number = world.begin(pace=0.2)
    trainer = world.trainer(number)
    world.until(number, lambda one: (one.step or 0) >= 1)
    world.kill_keeper(number)
    world.until(number, lambda one: not is_alive(trainer))
    start_keeper(world.place, number, world.environ)
    training = world.over(number)
    assert training.state == "done"
    assert training.step == 8
    assert len(training.raw["curve"]) == 8
    assert world.said(number).count("checkpoint at step") == 4, "told once each, also those that nobody saw"
    assert len(world.adapters()) == 1


def test_both_killed_at_once_goes_on_from_the_checkpoint(world: World) -> None:
    number = world.begin(pace=0.2)
    trainer = world.trainer(number)
    world.until(number, lambda one: (one.step or 0) >= 3)
    world.kill_keeper(number)
    os.kill(trainer.pid, signal.SIGKILL)
    start_keeper(world.place, number, world.environ)
    training = world.over(number)
    assert training.state == "done"
    assert [point[0] for point in training.raw["curve"]] == list(range(1, 9))
    assert world.trainer(number) != trainer


def test_stop_keeps_a_checkpoint_and_resume_goes_on(world: World) -> None:
    number = world.begin(pace=0.3)
    world.until(number, lambda one: (one.step or 0) >= 3)
    assert stop_training(world.place, number) == "stopping after the step in hand, with a checkpoint"
    training = world.over(number)
    assert training.state == "stopped"
    assert training.step is not None
    assert training.step < 8
    assert training.checkpoint is not None
    assert training.checkpoint.endswith(f"checkpoint-{training.step}")
    assert "stopped, as asked, at step" in (training.message or "")
    start_keeper(world.place, number, world.environ)
    assert world.over(number).state == "done"


def test_a_keeper_that_is_told_to_end_stops_its_training_in_good_order(world: World) -> None:
    number = world.begin(pace=0.3)
    training = world.until(number, lambda one: (one.step or 0) >= 1)
    assert training.keeper_pid is not None
    os.kill(training.keeper_pid, signal.SIGTERM)
    training = world.over(number)
    assert (training.state, "SIGTERM" in (training.message or "")) == ("stopped", True)


def test_a_deaf_trainer_ends_at_the_second_word(world: World) -> None:
    number = world.begin(pace=0.1, at={"4": "hang"}, deaf=True)
    trainer = world.trainer(number)
    world.until(number, lambda one: (one.step or 0) >= 3)
    stop_training(world.place, number)
    assert call(world.place, "training", number, "status")["stopping"] == "stopped, as asked"
    assert "ends at once" in stop_training(world.place, number)
    training = world.over(number)
    assert training.state == "stopped"
    assert "before its checkpoint was written" in (training.message or "")
    assert not is_alive(trainer)


def test_what_a_dead_keeper_left_is_stopped_without_one(world: World) -> None:
    number = world.begin(pace=0.3)
    trainer = world.trainer(number)
    world.until(number, lambda one: (one.step or 0) >= 1)
    world.kill_keeper(number)
    assert "1 process ended" in stop_training(world.place, number)
    assert not is_alive(trainer)
    assert world.training(number).state == "stopped"
    with pytest.raises(LoraError, match="nothing to stop"):
        stop_training(world.place, number)


async def test_a_store_that_takes_nothing_holds_up_no_stop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.play(pace=0.2)
    monkeypatch.setenv("LLMTUNE_STAND_IN", world.environ["LLMTUNE_STAND_IN"])
    monkeypatch.setattr(lora.process.process_keeper, "GIVE_UP_AFTER_S", 1.0)
    settings = TrainingSettings(str(world.model), 1, epochs=None, steps=8)
    number = create_training(world.place, world.dataset, settings, world.python)
    database = database_file(world.place)
    with open_writer(database) as real, open_reader(database) as reader:
        writer = Full(real)
        keeper = lora.keeper.TrainingKeeper(world.place, reader.training(number), writer, reader)  # type: ignore[arg-type]
        keeper.take_over()
        working = asyncio.create_task(keeper.work())
        while (reader.training(number).step or 0) < 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        writer.full = True
        while (await keeper.commands()["status"]({}))["blocked"] is None:  # noqa: ASYNC110 - the next event meets it
            await asyncio.sleep(0.05)
        await keeper.commands()["stop"]({})
        async with asyncio.timeout(15):
            await asyncio.wait({working})
        trainer = world.trainer(number)
        assert not is_alive(trainer), "it was told at once, and has written its checkpoint"
        writer.full = False
        again = lora.keeper.TrainingKeeper(world.place, reader.training(number), writer, reader)  # type: ignore[arg-type]
        again.take_over()
        await again.work()
        assert reader.training(number).state == "done"
        assert len(reader.training(number).raw["curve"]) == 8


@pytest.mark.parametrize(
    ("fault", "said", "resumable"),
    [
        ("sick", "the loss is not a number at step 3: lower --learning-rate", False),
        ("crash", "with status 1 at step 2: RuntimeError: the GPU has fallen off the bus", True),
        ("silent", "with status 0 at step 2", True),
        ("full", "ended at step 2: the disk takes nothing more, not even a line about it; free some", True),
    ],
)
def test_a_training_that_fails_says_why(world: World, fault: str, said: str, resumable: bool) -> None:
    number = world.begin(at={"3": fault})
    training = world.over(number)
    assert training.state == "failed"
    assert said in (training.message or "")
    assert ("goes on from its checkpoint" in (training.message or "")) is resumable
    assert not world.adapters()
    last = world.events(number)[-1]
    assert (last.level, said in last.text) == ("error", True)


def test_lines_that_are_none_change_nothing(world: World) -> None:
    number = world.begin(at={"3": "garbage", "5": "nan"})
    training = world.over(number)
    assert training.state == "done"
    assert [point[0] for point in training.raw["curve"]] == [1, 2, 3, 4, 6, 7, 8]


def test_a_python_that_does_not_run_says_so(world: World) -> None:
    Path(world.python.python).write_text("#!/bin/sh\necho 'No module named torch' >&2\nexit 4\n")
    training = world.over(number := world.begin())
    assert training.state == "failed"
    assert "No module named torch" in (training.message or "")
    assert "No module named torch" in (world.place / training.path / LOG).read_text()
    Path(world.python.python).unlink()
    with_none = world.over(world.begin())
    assert "does not start" in (with_none.message or "")
    assert not marked(world.training(number).marker)


def test_data_and_base_must_be_what_they_were(world: World) -> None:
    number = world.begin(at={"3": "crash"})
    world.over(number)
    weights = world.model / "model.safetensors"
    weights.write_bytes(b"other")
    with pytest.raises(DataChanged, match="not what it was since training 1 began"):
        start_keeper(world.place, number, world.environ)
    weights.unlink()
    (world.place / "datasets" / "1-seven" / "train.jsonl").write_text("{}\n")
    with pytest.raises(DataChanged, match="dataset 1 has changed"):
        start_keeper(world.place, number, world.environ)
    with pytest.raises(DataChanged, match="dataset 1 has changed"):
        world.begin()


def test_a_training_has_one_keeper(world: World) -> None:
    number = world.begin(pace=0.3)
    with pytest.raises(LoraError, match="has a keeper already"):
        start_keeper(world.place, number, world.environ)
    with pytest.raises(EngineError, match="unknown command"):
        call(world.place, "training", number, "pause")
    stop_training(world.place, number)
    world.over(number)


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"r": 0}, "--r "),
        ({"steps": None, "epochs": None}, "either --epochs or --steps"),
        ({"steps": 3, "epochs": 1.0}, "either --epochs or --steps"),
        ({"learning_rate": float("nan")}, "--learning-rate"),
        ({"dropout": 1.0}, "--dropout"),
        ({"seed": -1}, "--seed"),
        ({"targets": ()}, "--targets"),
    ],
)
def test_settings_that_no_training_takes_are_refused(world: World, changes: dict[str, object], option: str) -> None:
    kept: dict[str, object] = {"base_model": str(world.model), "dataset_id": 1, "epochs": None, "steps": 8}
    with pytest.raises(LoraError, match=option):
        create_training(world.place, world.dataset, TrainingSettings(**{**kept, **changes}), world.python)  # type: ignore[arg-type]
