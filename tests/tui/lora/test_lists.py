"""The three lists of the LoRA screen, driven by keys at 80x24 and 140x45."""

from pathlib import Path

import pytest

from store.writer import Writer
from tests.tui.conftest import fed
from tests.tui.lora.pilot import LARGE, SIZES, SMALL, Deeds, is_on, on_lora, shows, text
from tests.tui.lora_world import a_dataset
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.screens.help import HelpScreen
from tui.screens.lora import LoraScreen
from tui.screens.lora_form import TrainingFormScreen


@pytest.mark.parametrize("size", SIZES)
async def test_all_three_lists_and_the_live_loss_are_seen_at_once(
    app: LlmtuneApp, world: Path, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot)
        await shows(pilot, "▶ running", "120/540", "● qwen-lora", "imported@1", "1,440", "loss  training")
        shown = page(pilot)
        assert "about 10:30 left" in shown
        assert ("tokens/s  1,637" in shown) == (size == LARGE)
        assert "5 LoRA" in shown.splitlines()[0]


async def test_a_new_step_is_drawn(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await shows(pilot, "120/540")
        with (world / "trainings" / "2-support-qv" / "progress.jsonl").open("a") as file:
            file.write('{"kind": "step", "step": 121, "loss": 0.987, "seconds": 181.5}\n')
        await shows(pilot, "121/540", "0.987")


async def test_the_cursor_goes_through_all_lists(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("j", "j")
        await shows(pilot, "imported from /elsewhere/a")
        await pilot.press("j")
        await shows(pilot, "served by qwen-lora", "147 of 160", "▸2 (1.300)")
        await pilot.press("j", "j")
        await shows(pilot, "with nothing yet: n begins a training")
        await pilot.press("j")
        await shows(pilot, "31 duplicates", "support-qv (running)")
        await pilot.press("j", "k", "k", "k")
        await shows(pilot, "served by qwen-lora")
        await pilot.press("tab")
        await shows(pilot, "31 duplicates")


async def test_the_filter_leaves_what_has_the_words(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("slash", *"imported", "enter")
        await shows(pilot, "imported from /elsewhere/a")
        assert "support-qv@2" not in text(pilot)
        await pilot.press("escape")
        await shows(pilot, "support-qv@2", "120/540")


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_place_says_how_to_begin(
    app: LlmtuneApp, writer: Writer, deeds: Deeds, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot, "no training yet: n begins one")
        assert "no data set yet: p makes one" in text(pilot)
        await pilot.press("enter", "x", "R", "y")
        assert isinstance(app.screen, LoraScreen)
        await shows(pilot, "n train", "p prepare", "i import", "? help")
        writer.insert(a_dataset())
        await shows(pilot, "support", "with nothing yet: n begins a training")
        await pilot.press("n")
        await is_on(pilot, TrainingFormScreen)


async def test_every_key_and_number_stands_in_the_help(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=(80, 120)) as pilot:
        await on_lora(pilot)
        for screen in (None, "n", "p", "i"):
            if screen is not None:
                await pilot.press(screen)
                await fed(pilot)
                await pilot.press("escape")
            main = app.screen
            await pilot.press("question_mark")
            await is_on(pilot, HelpScreen)
            shown = text(pilot)
            for number in main.LEGEND:  # type: ignore[attr-defined]
                assert number.name in shown
            for words in ("leave; what runs", "LoRA"):
                assert words in shown
            await pilot.press("escape", *(["escape"] if screen is not None else []))
            await is_on(pilot, LoraScreen)


async def test_the_palette_offers_what_is_possible(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        titles = {command.title for command in app.screen.commands()}  # type: ignore[attr-defined]
        assert any(title.startswith("The form of a new training") for title in titles)
        assert any(title.startswith("Stop the chosen training") for title in titles)
        assert not any(title.startswith("Go on with") for title in titles)
