"""Data sets: reported on before they are kept, and as they were kept."""

import json
from pathlib import Path

import pytest
from textual.widgets import Input

from store.database import open_reader
from store.location import database_file
from tests.tui.conftest import fed
from tests.tui.lora.pilot import SIZES, SMALL, is_on, on_lora, shows, text, to_adapter
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.screens.lora import LoraScreen
from tui.screens.lora_dataset import DatasetScreen
from tui.screens.lora_prepare import PrepareScreen


@pytest.mark.parametrize("size", SIZES)
async def test_a_data_set_opens_as_its_report(app: LlmtuneApp, world: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await to_adapter(pilot)
        await pilot.press("j", "j", "j", "enter")
        await is_on(pilot, DatasetScreen)
        await shows(pilot, "data set 1 support", "432,000", "31 duplicates")
        page(pilot)


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    lines = [json.dumps({"instruction": f"Question {at} [/x]?", "output": f"Answer {at}."}) for at in range(20)]
    file = tmp_path / "conversations.jsonl"
    file.write_text("\n".join([*lines, lines[0], "{broken"]) + "\n")
    return file


@pytest.mark.parametrize("size", SIZES)
async def test_a_file_is_reported_on_before_it_is_kept(
    app: LlmtuneApp, world: Path, conversations: Path, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot)
        await pilot.press("p")
        screen = await is_on(pilot, PrepareScreen)
        await pilot.press("ctrl+s")
        await shows(pilot, "look at it first: enter")
        screen.query_one("#l-file", Input).value = str(conversations)
        await pilot.press("enter")
        await shows(pilot, "22 records, JSON lines, form alpaca", "18 train, 2 validation", "Question 0 [/x]?")
        page(pilot)
        assert datasets(world) == ["support", "tiny"]
        screen.query_one("#l-share", Input).value = "0.25"
        await pilot.press("ctrl+s")
        await shows(pilot, "look at it first: enter")
        await pilot.press("enter")
        await shows(pilot, "15 train, 5 validation")
        await pilot.press("ctrl+s", "n")
        assert datasets(world) == ["support", "tiny"]
        await pilot.press("ctrl+s", "y")
        await is_on(pilot, LoraScreen)
        await shows(pilot, "conversations is kept as data set 3")
        assert datasets(world) == ["support", "tiny", "conversations"]


@pytest.mark.parametrize(
    ("field_name", "value", "said"),
    [
        ("file", "", "no file is named"),
        ("file", "/not/there.jsonl", "/not/there.jsonl"),
        ("share", "0.9", "held out: 0.9 is no number from 0 to 0.5"),
        ("seed", "x", "seed: x is no number"),
        ("length", "10", "longest counts tokens: name a model"),
        ("name", "a b", "name a b: use letters"),
        ("model", "/not/there", "/not/there"),
    ],
)
async def test_what_cannot_be_prepared_says_why(
    app: LlmtuneApp, world: Path, conversations: Path, field_name: str, value: str, said: str
) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("p")
        screen = await is_on(pilot, PrepareScreen)
        screen.query_one("#l-file", Input).value = str(conversations)
        screen.query_one(f"#l-{field_name}", Input).value = value
        await pilot.press("enter")
        await fed(pilot, lambda: f"✗ {said}" in text(pilot) or ("✗" in text(pilot) and said in text(pilot)))
        await pilot.press("ctrl+s")
        await shows(pilot, "it cannot be kept: see what was found")


def datasets(data_dir: Path) -> list[str]:
    with open_reader(database_file(data_dir)) as reader:
        return [one.name for one in reader.datasets()]
