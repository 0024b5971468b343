"""A training on the LoRA screens: followed, stopped, gone on with."""

from pathlib import Path

import pytest

from engine.keeper.client import KeeperGone
from store.writer import Writer
from tests.lora.training_world import World
from tests.tui.lora.pilot import SIZES, SMALL, Deeds, is_on, on_lora, shows
from tests.tui.lora_world import a_dataset, a_training
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.messages import GoingOn
from tui.parting import parting_words
from tui.screens.lora import LoraScreen
from tui.screens.lora_training import TrainingScreen
from tui.widgets.confirm import Confirm


@pytest.mark.parametrize("size", SIZES)
async def test_a_training_opens_as_its_curves(app: LlmtuneApp, world: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot)
        await pilot.press("enter")
        await is_on(pilot, TrainingScreen)
        await shows(pilot, "learning rate", "NVIDIA H200", "loss  training")
        page(pilot)
        await pilot.press("escape")
        await is_on(pilot, LoraScreen)


async def test_a_training_is_stopped_after_a_question(app: LlmtuneApp, world: Path, deeds: Deeds) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("x")
        await is_on(pilot, Confirm)
        await pilot.press("n")
        assert not deeds.heard
        await pilot.press("x", "y")
        await shows(pilot, "training 2 stopped at step 120")
        assert deeds.heard == [("stop", "training", 2)]


async def test_a_training_whose_keeper_is_gone_goes_on_with_one_key(app: LlmtuneApp, world: Path, deeds: Deeds) -> None:
    deeds.held = "left"
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await shows(pilot, "! interrupted", "nobody keeps it, and its trainer has ended", "R resume")
        await pilot.press("R")
        await shows(pilot, "training 2 goes on")
        deeds.error = KeeperGone("no keeper runs for training 2")
        await pilot.press("R")
        await shows(pilot, "✗ no keeper runs for training 2")


async def test_why_a_training_failed_is_said(app: LlmtuneApp, writer: Writer, deeds: Deeds) -> None:
    writer.insert(a_dataset())
    writer.insert(a_training(state="failed", message="the loss became NaN at step 7: lower the learning rate [/x]"))
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot, "✗ failed")
        await shows(pilot, "the loss became NaN at step 7: lower the learning rate [/x]")


async def test_leaving_says_that_a_training_goes_on() -> None:
    going_on = GoingOn(trainings=(a_training(id=2),))
    assert parting_words(going_on, lambda kind, _: kind == "training").startswith("training 2 goes on")
    assert "llmtune lora resume 2" in parting_words(going_on, lambda *_: False)


async def test_the_program_that_is_opened_for_a_training_begins_at_it(world: Path, data_dir: Path) -> None:
    """Also where it is not the newest; afterwards the cursor is the person's."""
    app = LlmtuneApp(data_dir, None, open_training=1)
    async with app.run_test(size=SMALL) as pilot:
        await shows(pilot, "✔ done  first")
        assert isinstance(app.screen, LoraScreen)
        await pilot.press("k")
        await shows(pilot, "▶ running  support-qv")


async def test_a_training_that_computes_on_unkept_is_followed_again_with_one_key(
    app: LlmtuneApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keeper was killed: its steps are drawn all the same, and R gives it a keeper."""
    made = World(tmp_path)
    number = made.begin(pace=0.5, steps=300)  # it does not end while it is looked at
    monkeypatch.setenv("LLMTUNE_STAND_IN", made.environ["LLMTUNE_STAND_IN"])
    made.until(number, lambda one: (one.step or 0) >= 1)
    trainer = made.trainer(number)
    made.kill_keeper(number)
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot, "! computes on")
        await shows(pilot, "its trainer computes on: R follows it again", "/300")
        await pilot.press("R")
        await shows(pilot, "training 1 is followed again: its process computed on", "▶ running")
        assert made.trainer(number) == trainer
        await pilot.press("x")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await shows(pilot, "○ stopped")
    made.over(number)
