"""The form of a training, with what it comes to."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from lora.records import LoraError
from lora.trainings.memory_free import MemoryFree
from tests.tui.conftest import fed
from tests.tui.lora.pilot import (
    FREE,
    HELD,
    SIZES,
    SMALL,
    Deeds,
    is_on,
    on_lora,
    shows,
    text,
)
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.lora.form import Wanted
from tui.screens import lora_form
from tui.screens.lora import LoraScreen
from tui.screens.lora_form import TrainingFormScreen
from tui.screens.lora_training import TrainingScreen
from tui.widgets.confirm import Confirm
from tui.widgets.training_form import TrainingFields


async def on_form(pilot: Pilot[Any], model: Path) -> TrainingFields:
    await on_lora(pilot)
    await pilot.press("n")
    await is_on(pilot, TrainingFormScreen)
    fields = pilot.app.screen.query_one(TrainingFields)
    await fed(pilot, lambda: bool(fields.form.dataset))
    fields.put("model", str(model))
    return fields


@pytest.mark.parametrize("size", SIZES)
async def test_what_a_training_comes_to_stands_below_its_form(
    app: LlmtuneApp, world: Path, model: Path, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        fields = await on_form(pilot, model)
        assert fields.form.targets == "q_proj, v_proj"  # as the chosen training has them
        await shows(pilot, "5,046,272 parameters in 56 layers", "20.2 MB", "it fits", "540: 1,440 conversations")
        page(pilot)
        await pilot.press("ctrl+t")
        await shows(pilot, "in 196 layers")
        await pilot.press("ctrl+t")
        await shows(pilot, "5,046,272 parameters in 56 layers")
        await pilot.press("escape", "t")
        await shows(pilot, "in 196 layers")
        fields.put("r", "0")
        await shows(pilot, "✗ rank r: '0' is no whole number of at least 1")
        await pilot.press("S")
        assert isinstance(app.screen, TrainingFormScreen)


async def test_a_training_begins_after_one_question(app: LlmtuneApp, world: Path, model: Path, deeds: Deeds) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        await shows(pilot, "it fits")
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        assert "540 steps" in text(pilot)
        await pilot.press("y")
        await is_on(pilot, TrainingScreen)
        assert [what for what, *_ in deeds.heard] == ["start"]
        begun = deeds.heard[0][1]
        assert isinstance(begun, Wanted)
        assert (begun.name, begun.settings.alpha, begun.settings.targets) == ("support-qv", 16, ("q_proj", "v_proj"))
        await pilot.press("escape")
        await is_on(pilot, LoraScreen)


async def test_what_was_typed_last_is_what_begins(app: LlmtuneApp, world: Path, model: Path, deeds: Deeds) -> None:
    """Also where it is not counted yet when the key is pressed."""
    async with app.run_test(size=SMALL) as pilot:
        fields = await on_form(pilot, model)
        await shows(pilot, "it fits")
        fields.put("r", "8")
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await is_on(pilot, TrainingScreen)
        assert deeds.heard[0][1].settings.r == 8


async def test_a_training_that_does_not_begin_says_why(app: LlmtuneApp, world: Path, model: Path, deeds: Deeds) -> None:
    deeds.error = LoraError("dataset 1 has changed since it was prepared: prepare it again")
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        await shows(pilot, "it fits")
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await shows(pilot, "✗ it did not begin: dataset 1 has changed")
        assert isinstance(app.screen, TrainingFormScreen)


async def test_a_server_that_holds_the_memory_is_named_and_stopped(
    app: LlmtuneApp, world: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []

    def stop(data_dir: Path, number: int) -> str:
        stopped.append(number)
        monkeypatch.setattr(lora_form, "memory_free", lambda *_: FREE)
        return "server 1 is stopped"

    monkeypatch.setattr(lora_form, "memory_free", lambda *_: HELD)
    monkeypatch.setattr("engine.hand_servers.stop_server", stop)
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        await shows(pilot, "GiB too little", "pid 7 (server 1 qwen) 130.7 GiB", "^g stop server")
        await pilot.press("ctrl+g", "y")
        await shows(pilot, "it fits")
        assert stopped == [1]


async def test_a_driver_that_hangs_blocks_nothing(
    app: LlmtuneApp, world: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    answer = threading.Event()

    def hang(*_: Any) -> MemoryFree:
        asked.append(time.monotonic())
        answer.wait(30)
        return FREE

    monkeypatch.setattr(lora_form, "memory_free", hang)
    monkeypatch.setattr(lora_form, "ASK_S", 0.05)
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        longest, before = 0.0, time.monotonic()
        for _ in range(50):
            await asyncio.sleep(0.01)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
        assert longest < 10
        await shows(pilot, "asking what is free", "5,046,272")
        assert len(asked) == 1
        answer.set()
        await shows(pilot, "it fits")


async def test_another_data_set_is_one_key_away(app: LlmtuneApp, world: Path, model: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        fields = await on_form(pilot, model)
        assert fields.form.dataset == "support"
        await pilot.press("ctrl+n")
        assert fields.form.dataset == "tiny"
        await shows(pilot, "6: 9 conversations")
