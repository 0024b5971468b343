"""The LoRA screen's keys on a vLLM that runs: an adapter made elsewhere is imported and loaded, another rolled back,
and none deleted that is served. Each waits for a command of ours, which asks the server."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from lora.served.server_api import ServerApi
from tests.tui.lora.pilot import is_on, on_lora, shows, text
from tui.app import LlmtuneApp
from tui.screens.lora import LoraScreen
from tui.screens.lora_import import ImportAdapterScreen
from tui.widgets.choose import Choose
from tui.widgets.confirm import Confirm
from tui.widgets.status_line import StatusLine

SIZE = (140, 45)
WITHIN_S = 300.0  # some seconds on two free cores
BROUGHT = "brought"


def served(url: str) -> dict[str, str]:
    """Name → folder of the adapters that the server lists."""
    with ServerApi(url) as api:
        return {each.name: each.root or "" for each in api.models() if each.parent is not None}


async def by_keys(place: Path, vllm: str, url: str, made: Path, name: str) -> None:
    """`made` is an adapter's folder, `name` one of whose two versions the server at `url` serves the one."""
    folder = place / "adapters" / name
    now = served(url)[name]
    (other,) = [version for version in ("1", "2") if now != str(folder / version)]
    app = LlmtuneApp(place, vllm)
    async with app.run_test(size=SIZE) as pilot:
        await on_lora(pilot, f"{name}@1")
        await _import(pilot, made)
        await _choose(pilot, BROUGHT)
        await pilot.press("enter")
        await is_on(pilot, Choose)
        assert "l load it into" in " ".join(text(pilot).split())
        await pilot.press("l")
        await _come(pilot, lambda: f"✔ {BROUGHT}@1 as {BROUGHT} on" in text(pilot))
        assert served(url) == {**served(url), name: now, BROUGHT: str(place / "adapters" / BROUGHT / "1")}
        await _come(pilot, lambda: "● served by" in text(pilot))

        await _choose(pilot, f"{name}@{other}")
        await pilot.press("enter")
        await is_on(pilot, Choose)
        await pilot.press("b")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await _come(pilot, lambda: f"{name}@{other} in place of {name}@" in text(pilot))
        assert served(url)[name] == str(folder / other)
        await _come(pilot, lambda: "● served by" in text(pilot))

        await pilot.press("D")
        await shows(pilot, "✗ not deleted: server", f"serves {name}@{other}: stop it")
        assert (folder / other).is_dir()


async def _import(pilot: Pilot[object], made: Path) -> None:
    await pilot.press("i")
    screen = await is_on(pilot, ImportAdapterScreen)
    screen.query_one("#l-folder", Input).value = str(made)
    screen.query_one("#l-name", Input).value = BROUGHT
    await pilot.press("enter")
    await _come(pilot, lambda: f"{BROUGHT}: r 16" in text(pilot) and "serves it, on" in text(pilot))
    await pilot.press("ctrl+s")
    await is_on(pilot, Confirm)
    await pilot.press("y")
    await is_on(pilot, LoraScreen)
    await shows(pilot, f"kept as {BROUGHT}@1")


async def _choose(pilot: Pilot[object], words: str) -> None:
    """The cursor on the only line with these words."""
    await pilot.press("escape", "slash", *(("at" if char == "@" else char) for char in words), "enter")
    await _come(pilot, lambda: "signed" in text(pilot) and words in text(pilot).rpartition("versions")[0])


async def _come(pilot: Pilot[object], when: Callable[[], bool]) -> None:
    """Until it is so; a command that fails says so, and is not waited for."""
    deadline = time.monotonic() + WITHIN_S
    while not when():
        assert time.monotonic() < deadline, text(pilot)
        assert not pilot.app.screen.query_one(StatusLine).is_error, text(pilot)
        pilot.app.ask()  # type: ignore[attr-defined]
        await asyncio.sleep(0.1)
    await pilot.pause()
