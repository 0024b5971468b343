"""What is done with an adapter by keys."""

from pathlib import Path

import pytest

from store.database import open_reader
from store.location import database_file
from tests.tui.conftest import fed
from tests.tui.lora.pilot import SIZES, SMALL, Commands, is_on, on_lora, shows, text, to_adapter
from tests.tui.lora_world import BASE
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.screens import lora_adapters
from tui.screens.lora import LoraScreen
from tui.screens.lora_adapter import AdapterScreen
from tui.screens.tune import TuneScreen
from tui.widgets.choose import Choose
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (("s", "enter"), ["lora", "serve", "support-qv@2", "--", "--gpu-memory-utilization", "0.7"]),
        (("l",), ["lora", "serve", "support-qv@2", "--server", "1"]),
        (("e",), ["lora", "eval", "support-qv@2", "--no-wait"]),
        (("b", "y"), ["lora", "rollback", "support-qv", "--to", "2"]),
    ],
)
async def test_what_is_done_with_an_adapter_is_a_command(
    app: LlmtuneApp,
    world: Path,
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    keys: tuple[str, ...],
    words: list[str],
) -> None:
    monkeypatch.setattr(lora_adapters, "SERVE_FLAGS", dict.fromkeys((True, False), "--gpu-memory-utilization 0.7"))
    async with app.run_test(size=SMALL) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter")
        await is_on(pilot, Choose)
        page(pilot)
        await pilot.press(*keys)
        await fed(pilot, lambda: bool(commands.begun))
        assert commands.begun == [words]
        await shows(pilot, "◐ ", "goes on when you leave")
        commands.process.status = 0
        await shows(pilot, "✔ done as asked")
        assert "◐ " not in text(pilot)


async def test_a_command_that_fails_says_what_it_was_told(app: LlmtuneApp, world: Path, commands: Commands) -> None:
    commands.process.status, commands.says = (
        1,
        "llmtune: no memory [/x] \x1b[31m\nllmtune: /d goes: name one with --data-dir\n",
    )
    async with app.run_test(size=SMALL) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter", "e")
        await shows(pilot, "✗ evaluating support-qv@2: no memory [/x]")


async def test_tuning_with_an_adapter_opens_the_editor(
    app: LlmtuneApp, world: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str | None] = []
    monkeypatch.setattr(TuneScreen, "open_plan", lambda _, path: opened.append(path))
    commands.process.status = 0
    async with app.run_test(size=SMALL) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter", "t")
        await is_on(pilot, TuneScreen)
        await fed(pilot, lambda: bool(opened))
        plan = str(world / "plans" / "support-qv-2.toml")
        assert commands.begun == [["lora", "price", "support-qv@2", "--out", plan]]
        assert opened == [plan]


@pytest.mark.parametrize("size", SIZES)
async def test_an_adapter_opens_with_what_vllm_makes_of_it(app: LlmtuneApp, world: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter", "v")
        await is_on(pilot, AdapterScreen)
        await shows(pilot, "cannot be served: its folder")
        await pilot.press("end")
        await shows(pilot, "Within 30 days, [/b] yes.")
        page(pilot)


async def test_the_command_that_goes_on_with_it_is_copied(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        for steps, words in ((0, "lora attach 2"), (3, "lora serve support-qv@2"), (3, f"lora train 1 --model {BASE}")):
            await pilot.press(*"j" * steps)
            await fed(pilot)
            await pilot.press("y")
            await is_on(pilot, CopyPanel)
            assert f"llmtune {words} --data-dir" in " ".join(text(pilot).split())
            await pilot.press("escape")


async def test_a_version_is_deleted_after_one_question(app: LlmtuneApp, world: Path) -> None:
    folder = world / "adapters" / "imported" / "1"
    folder.mkdir(parents=True)
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("j", "j")
        await shows(pilot, "imported from /elsewhere/a")
        await pilot.press("D")
        await is_on(pilot, Confirm)
        assert "Delete imported@1 (20.2 MB)?" in " ".join(text(pilot).split())
        page(pilot)
        await pilot.press("n")
        assert folder.is_dir()
        await pilot.press("D")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await shows(pilot, "imported@1 is deleted; its number is not given again", "served by qwen-lora")
        assert not folder.exists()
        with open_reader(database_file(world)) as reader:
            assert [one.label for one in reader.adapters()] == ["support-qv@1", "support-qv@2"]


async def test_a_version_that_is_served_is_not_deleted(app: LlmtuneApp, world: Path) -> None:
    """Nor does D do anything where no adapter is chosen."""
    async with app.run_test(size=(140, 30)) as pilot:
        await on_lora(pilot)
        await pilot.press("D")
        await pilot.press("j", "j", "j")
        await shows(pilot, "served by qwen-lora")
        await pilot.press("D")
        await shows(
            pilot, "✗ not deleted: server qwen-lora serves support-qv@2: stop it (`llmtune server stop 1`) first"
        )
        assert isinstance(app.screen, LoraScreen)
        with open_reader(database_file(world)) as reader:
            assert len(reader.adapters()) == 3
