"""An adapter made elsewhere: looked at before it is kept."""

from pathlib import Path

from textual.widgets import Input

from store.database import open_reader
from store.location import database_file
from tests.lora.made_adapters import tiny_factors, write_adapter, write_model
from tests.tui.lora.pilot import SMALL, is_on, on_lora, shows
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.screens.lora import LoraScreen
from tui.screens.lora_import import ImportAdapterScreen
from tui.widgets.confirm import Confirm


async def test_an_adapter_is_looked_at_before_it_is_kept(app: LlmtuneApp, world: Path, tmp_path: Path) -> None:
    model = write_model(tmp_path / "base")
    folder = write_adapter(tmp_path / "my adapter", tiny_factors(8), r=8, base_model_name_or_path=str(model))
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("i")
        screen = await is_on(pilot, ImportAdapterScreen)
        screen.query_one("#l-folder", Input).value = str(folder)
        await pilot.press("enter")
        await shows(pilot, "my-adapter: r 8")
        page(pilot)
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await is_on(pilot, LoraScreen)
        await shows(pilot, "kept as my-adapter@1")
        with open_reader(database_file(world)) as reader:
            assert reader.adapter("my-adapter@1").imported_from == str(folder)


async def test_an_adapter_that_vllm_would_refuse_is_kept_only_knowingly(
    app: LlmtuneApp, world: Path, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "base")
    folder = write_adapter(tmp_path / "dora", tiny_factors(8), r=8, base_model_name_or_path=str(model), use_dora=True)
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("i")
        screen = await is_on(pilot, ImportAdapterScreen)
        await pilot.press("enter")
        await shows(pilot, "✗ no folder is named")
        screen.query_one("#l-folder", Input).value = str(folder)
        await pilot.press("enter")
        await shows(pilot, "would not serve it as it was trained", "DoRA")
        await pilot.press("ctrl+s")
        await shows(pilot, "keep it anyway")
        await pilot.press("n")
        assert isinstance(app.screen, ImportAdapterScreen)
