"""Driving the LoRA screens: what stands in for trainings and commands, and where the keys lead."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from lora.process.work import Work
from lora.trainings.memory_free import Holder, MemoryFree
from tests.tui.conftest import fed, screen_text
from tui import errands
from tui.app import LlmtuneApp
from tui.lora.form import Wanted
from tui.lora.held import kind_of
from tui.lora.standing import Held
from tui.screens.lora import LoraScreen

SMALL, LARGE = (80, 24), (140, 45)
SIZES = (SMALL, LARGE)
FREE = MemoryFree("GPU 0 (NVIDIA H200)", True, 131.0, 140.4)
HELD = MemoryFree("GPU 0", True, 1.5, 140.4, (Holder("pid 7 (server 1 qwen) 130.7 GiB", 130.7, 7, 1),))


@dataclass
class Deeds:
    """Stands where trainings and commands would be begun."""

    held: Held = "kept"
    error: Exception | None = None
    heard: list[tuple[Any, ...]] = field(default_factory=list)

    def note(self, *what: Any) -> Any:
        if self.error is not None:
            raise self.error
        self.heard.append(what)
        return what[-1]

    def start(self, data_dir: Path, wanted: Wanted, vllm: str | None) -> int:
        self.note("start", wanted)
        return 2

    def stop(self, data_dir: Path, work: Work) -> str:
        self.note("stop", kind_of(work), work.id)
        return f"{kind_of(work)} {work.id} stopped at step 120"

    def resume(self, data_dir: Path, work: Work) -> str:
        self.note("resume", kind_of(work), work.id)
        return f"{kind_of(work)} {work.id} goes on"


@dataclass
class Command:
    """Stands for a process of ours."""

    status: int | None = None

    def poll(self) -> int | None:
        return self.status


@dataclass
class Commands:
    begun: list[list[str]] = field(default_factory=list)
    process: Command = field(default_factory=Command)
    says: str = "done as asked\n"

    def begin(self, data_dir: Path, what: str, words: list[str], vllm: str | None) -> errands.Errand:
        self.begun.append(words)
        log = data_dir / "errand.log"
        log.write_text(self.says)
        return errands.Errand(what, self.process, log)  # type: ignore[arg-type]


async def on_lora(pilot: Pilot[Any], said: str = "support-qv") -> None:
    await pilot.press("5")
    await fed(pilot, lambda: isinstance(pilot.app.screen, LoraScreen) and said in text(pilot))


def text(pilot: Pilot[Any]) -> str:
    assert isinstance(pilot.app, LlmtuneApp)
    return screen_text(pilot.app)


async def shows(pilot: Pilot[Any], *words: str) -> None:
    await fed(pilot, lambda: all(word in text(pilot) for word in words))


async def is_on(pilot: Pilot[Any], screen: type) -> Any:
    await fed(pilot, lambda: isinstance(pilot.app.screen, screen))
    return pilot.app.screen


async def to_adapter(pilot: Pilot[Any]) -> None:
    await on_lora(pilot)
    await pilot.press("j", "j", "j")
    await shows(pilot, "served by qwen-lora")
