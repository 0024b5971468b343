"""Trainings of ours on the same device, and what they are yet to take of its memory."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.processes.process import identify
from lora.records import TrainingSettings
from lora.sizes.base_model import base_of
from lora.sizes.memory import CONTEXT_GIB, MemoryNeeded, training_memory
from lora.trainings.memory_free import Holder, MemoryFree, held_on_gpu, memory_free, shortage
from lora.trainings.memory_shared import Sharing, computes, sharing
from store.clock import utc_now
from store.records import TrainingRecord
from tests.lora.made_adapters import QWEN_7B_CONFIG
from tests.lora.training_world import World

FREE = MemoryFree("GPU 0 (NVIDIA H200)", True, 20.0, 140.0)
NEEDED = MemoryNeeded(8.0, (("weights", 8.0),))
ALPACA = Sharing(3, "alpaca", 13.5)


@pytest.fixture
def running(tmp_path: Path) -> TrainingRecord:
    """A training of 7 billion numbers that has just begun."""
    (tmp_path / "config.json").write_text(json.dumps(QWEN_7B_CONFIG))
    settings = {"base_model": str(tmp_path), "dataset_id": 1}
    return TrainingRecord(
        "alpaca", "running", str(tmp_path), 1, settings, 0, "trainings/3-alpaca", "training-3", utc_now(), "alpaca",
        id=3, pid=77, start_ticks=1,
    )  # fmt: skip


def needed(training: TrainingRecord, gpu: bool) -> float:
    settings = TrainingSettings(training.base_model, 1)
    return training_memory(base_of(QWEN_7B_CONFIG), settings, gpu).total_gib


def more(training: TrainingRecord, gpu: bool, held: float | None) -> list[float]:
    return [one.more_gib for one in sharing([training], gpu, lambda _: held, lambda _: True)]


def with_raw(training: TrainingRecord, step: int | None, **raw: Any) -> TrainingRecord:
    return replace(training, step=step, raw=raw)


def test_one_that_has_just_begun_is_to_take_what_it_needs(running: TrainingRecord) -> None:
    assert more(running, True, 0.0) == [pytest.approx(needed(running, True))]
    assert more(running, True, 2.0) == [pytest.approx(needed(running, True) - 2.0)]
    assert more(running, True, 500.0) == [0.0]
    assert more(running, False, 1.0) == [pytest.approx(needed(running, False) - 1.0)]


def test_what_it_has_shown_to_take_counts_for_more_than_what_was_reckoned(running: TrainingRecord) -> None:
    plan, live = {"device": "NVIDIA H200"}, {"gpu_peak_gib": 6.0}
    assert more(with_raw(running, 3, plan=plan, live=live), True, 6.0) == [pytest.approx(CONTEXT_GIB[True])]
    assert more(with_raw(running, 2, plan=plan, live=live), True, 6.0) == [pytest.approx(needed(running, True) - 6.0)]
    assert more(with_raw(running, 9, plan=plan, live={"gpu_peak_gib": None}), True, 50.0) == [0.0]


def test_those_on_another_device_take_nothing_here(running: TrainingRecord) -> None:
    assert more(with_raw(running, 1, plan={"device": "processor"}), True, 0.0) == []
    assert more(with_raw(running, 1, plan={"device": "NVIDIA H200"}), False, 0.0) == []
    assert more(running, True, None) == []
    assert held_on_gpu(running, {77: 5.0}) == 5.0
    assert held_on_gpu(running, {}) == 0.0, "it is not there yet"
    assert held_on_gpu(replace(running, step=4), {78: 5.0}) is None, "it computes on another"


@pytest.mark.parametrize("state", ["waiting", "done", "stopped", "failed"])
def test_those_that_do_not_run_take_nothing(running: TrainingRecord, state: str) -> None:
    assert more(replace(running, state=state), True, 0.0) == []
    assert sharing([running], True, lambda _: 0.0, lambda _: False) == ()


def test_of_a_model_that_is_not_known_nothing_is_reckoned(running: TrainingRecord, tmp_path: Path) -> None:
    assert more(replace(running, base_model=str(tmp_path / "gone")), True, 0.0) == [0.0]


def test_one_runs_while_its_trainer_or_its_keeper_does(running: TrainingRecord) -> None:
    myself = identify(os.getpid())
    assert myself is not None
    assert not computes(running)
    alive = {"start_ticks": myself.start_ticks, "boot_id": myself.boot_id}
    assert computes(replace(running, pid=myself.pid, **alive))
    kept = replace(running, pid=None, start_ticks=None, boot_id=myself.boot_id)
    assert not computes(kept)
    assert computes(replace(kept, keeper_pid=myself.pid, keeper_start_ticks=myself.start_ticks))


def test_room_that_another_training_will_take_is_none() -> None:
    assert shortage(NEEDED, FREE) is None
    assert shortage(NEEDED, replace(FREE, trainings=(Sharing(3, "alpaca", 11.9),))) is None
    assert shortage(NEEDED, replace(FREE, trainings=(ALPACA,))) == (
        "the training needs about 8.0 GiB, GPU 0 (NVIDIA H200) has 20.0 GiB free of 140.0 GiB, of which training 3 "
        "(alpaca) is to take 13.5 GiB: wait until it ends, or stop it (`llmtune lora stop 3`)"
    )


def test_where_there_is_no_room_anyway_both_are_told() -> None:
    small = replace(FREE, free_gib=6.0, holders=(Holder("pid 9 (our server 2, chat) 100.0 GiB", 100.0, 9, 2),))
    said = shortage(NEEDED, replace(small, trainings=(ALPACA,))) or ""
    assert "of which training 3 (alpaca) is to take 13.5 GiB; held by pid 9 (our server 2, chat)" in said
    assert said.endswith("stop that server first, or train with less (--batch, --max-length)")
    alone = shortage(NEEDED, replace(small, holders=(), trainings=(replace(ALPACA, more_gib=0.0),))) or ""
    assert alone.endswith("wait until training 3 (alpaca) ends, or train with less (--batch, --max-length)")


def test_who_computes_there_too_is_said() -> None:
    assert FREE.shared is None
    one = replace(FREE, trainings=(ALPACA,))
    assert one.shared == "training 3 (alpaca) computes there too: both take longer until one ends"
    two = replace(FREE, trainings=(ALPACA, Sharing(4, "b\x1b[31m", 0.0)))
    assert "training 3 (alpaca), training 4 (b" in (two.shared or "")
    assert "\x1b" not in (two.shared or "")


def test_a_training_under_way_is_seen_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    world = World(tmp_path)
    number = world.begin(at={"2": "hang"})
    try:
        training = world.until(number, lambda one: (one.step or 0) >= 1)
        (seen,) = memory_free({"CUDA_VISIBLE_DEVICES": ""}, (), [training]).trainings
        assert (seen.training_id, seen.name) == (number, "model-seven")
        assert seen.more_gib > 0
    finally:
        world.kill_keeper(number)
        os.kill(world.trainer(number).pid, 9)
