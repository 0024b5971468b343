"""What a training in the form would come to."""

from dataclasses import replace

import pytest

from lora.sizes.base_model import BaseModel, base_of
from lora.trainings.memory_free import Holder, MemoryFree
from lora.trainings.memory_shared import Sharing
from store.records import TrainingRecord
from tests.tui.lora_world import (
    FORM,
    QWEN,
    a_dataset,
    a_training,
    shown,
    wanted,
)
from tui.lora.cost import cost_of, cost_rows, pace_of, question, steps_of


@pytest.fixture
def qwen() -> BaseModel:
    return base_of(QWEN)


def test_the_users_own_setting_on_the_shape_of_qwen(qwen: BaseModel) -> None:
    """r 16 on q_proj and v_proj: the figures of the issue."""
    form = replace(FORM, r="16", alpha="16", targets="q_proj, v_proj")
    free = MemoryFree("GPU 0 (NVIDIA H200)", True, 131.0, 140.4)
    cost = cost_of(wanted(form), qwen, free)
    text = shown(cost_rows(cost, 100))
    assert "5,046,272 parameters in 56 layers, of 7,620,662,784 (0.066 %), 20.2 MB" in text
    assert "540: 1,440 conversations, 8 a step, 3 epochs" in text
    assert "✔ it fits: needs about" in text
    assert "GPU 0 (NVIDIA H200) has 131.0 of 140.4 free" in text
    assert "not known yet" in text


def test_who_holds_the_memory_is_named(qwen: BaseModel) -> None:
    holders = (Holder("pid 7 (server 3 qwen-7b) 130.7 GiB", 130.7, 7, 3), Holder("pid 9 1.2 GiB", 1.2, 9))
    free = MemoryFree("GPU 0", True, 1.5, 140.4, holders)
    cost = cost_of(wanted(FORM), qwen, free)
    text = shown(cost_rows(cost, 100))
    assert "✗" in text
    assert "GiB too little" in text
    assert "pid 7 (server 3 qwen-7b) 130.7 GiB, pid 9 1.2 GiB" in text
    assert "^g stops server 3" in text
    assert [one.server_id for one in cost.stoppable] == [3]
    assert "too little free" in question(cost)


def test_room_that_another_training_will_take_is_none(qwen: BaseModel) -> None:
    free = MemoryFree("GPU 0", True, 30.0, 140.4, trainings=(Sharing(3, "alpaca", 27.0),))
    cost = cost_of(wanted(FORM), qwen, free)
    text = shown(cost_rows(cost, 200))
    assert "GiB too little" in text
    assert "30.0 of 140.4 free, of which 27.0 will be taken by trainings that run" in text
    assert "training 3 (alpaca) computes there too: both take longer" in text
    assert cost.short_gib is not None
    fits = cost_of(wanted(FORM), qwen, replace(free, trainings=(Sharing(3, "alpaca", 0.0),)))
    assert fits.short_gib is None
    assert "will be taken" not in shown(cost_rows(fits, 200))


def test_what_cannot_be_told_is_not_told(qwen: BaseModel) -> None:
    unknown = shown(cost_rows(cost_of(wanted(FORM), "its layers are not known here", None), 80))
    assert "its size is not known: its layers are not known here" in unknown
    assert "what it needs is not known" in unknown
    unread = cost_of(wanted(FORM), qwen, MemoryFree("GPU 0", True, None, None))
    assert unread.short_gib is None
    assert "what is free cannot be read" in shown(cost_rows(unread, 80))
    assert "asking what is free" in shown(cost_rows(cost_of(wanted(FORM), qwen, None), 80))


def test_a_target_that_the_model_lacks_is_a_mistake(qwen: BaseModel) -> None:
    cost = cost_of(wanted(replace(FORM, targets="q_proj w_pack")), qwen, None)
    assert cost.mistakes[0].startswith("targets: no layer of the model is called w_pack")


@pytest.mark.parametrize(
    ("examples", "batch", "accumulation", "epochs", "steps"),
    [(1440, 1, 8, 3.0, 540), (9, 1, 8, 3.0, 6), (9, 2, 8, 0.5, 1), (0, 1, 1, 1.0, 1), (100, 4, 4, 2.5, 18)],
)
def test_steps_are_counted_as_a_trainer_does(
    examples: int, batch: int, accumulation: int, epochs: float, steps: int
) -> None:
    settings = wanted(FORM).settings
    made = replace(settings, batch=batch, accumulation=accumulation, epochs=epochs)
    assert steps_of(made, examples) == steps
    assert steps_of(replace(made, epochs=None, steps=7), examples) == 7


def test_the_pace_is_that_of_the_same_model() -> None:
    settings, sets = wanted(replace(FORM, batch="2")).settings, [a_dataset(id=1)]
    done = a_training(id=4, step=540, seconds=810.0)
    found = pace_of(settings, sets[0], [done], sets)
    assert found is not None
    assert found.seconds == pytest.approx(3.0)  # twice the conversations a step
    assert found.basis == "training 4, 1.50 s a step"
    shorter = a_dataset(id=2, train_tokens=216_000)
    half = pace_of(settings, shorter, [done], [*sets, shorter])
    assert half is not None
    assert half.seconds == pytest.approx(1.5)
    others: list[TrainingRecord] = [
        replace(done, base_model="/other"),
        replace(done, seconds=float("nan")),
        replace(done, step=1),
        replace(done, settings={}),
    ]
    assert pace_of(settings, sets[0], others, sets) is None
