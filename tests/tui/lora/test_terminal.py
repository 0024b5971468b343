"""`llmtune lora train` and `lora attach` on a real pseudo-terminal: the LoRA screen, at that training."""

from pathlib import Path

import pytest

from tests.lora.training_world import World
from tests.tui.test_cli_terminal import LEAVES_ALTERNATE_SCREEN, Terminal

ENTERS_ALTERNATE_SCREEN = b"\x1b[?1049h"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Trainings by a stand-in, slow enough to be looked at until it is stopped."""
    world = World(tmp_path)
    world.play(pace=1.0, steps=150)
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(world.place))
    monkeypatch.setenv("LLMTUNE_STAND_IN", world.environ["LLMTUNE_STAND_IN"])
    return world


def test_a_training_is_shown_as_it_begins_and_outlives_the_screen(made: World) -> None:
    model = ("--model", str(made.model), "--python", made.python.python)
    terminal = Terminal("lora", "train", "seven", *model, "--steps", "8", "--max-length", "64", "--anyway")
    terminal.wait_for(b"running")
    terminal.press(b"q")
    assert terminal.end() == 0
    before, _, after = terminal.seen.rpartition(LEAVES_ALTERNATE_SCREEN)
    assert b"steps    8, of 8 examples each" in before.partition(ENTERS_ALTERNATE_SCREEN)[0], "what it comes to first"
    assert b"training 1 goes on: llmtune lora attach 1" in after
    assert made.training(1).state == "running"
    again = Terminal("lora", "attach", "last")
    again.wait_for(b"running")
    again.press(b"x")
    again.wait_for(b"stop it")
    again.press(b"y")
    made.over(1)
    again.wait_for(b"stopped")
    again.press(b"q")
    assert again.end() == 0
    assert b"`llmtune lora resume 1` goes on with it" in again.seen.rpartition(LEAVES_ALTERNATE_SCREEN)[2]
