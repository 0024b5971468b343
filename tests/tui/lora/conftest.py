"""The LoRA screens on a filled data directory, with nothing begun for real."""

import json
from pathlib import Path

import pytest

from store.writer import Writer
from tests.tui.lora.pilot import (
    FREE,
    Commands,
    Deeds,
)
from tests.tui.lora_world import QWEN, fill
from tui import errands
from tui.lora import deeds as lora_deeds
from tui.lora import held
from tui.screens import lora_form


@pytest.fixture
def deeds(monkeypatch: pytest.MonkeyPatch) -> Deeds:
    made = Deeds()
    monkeypatch.setattr(held, "held_by", lambda *_: made.held)
    monkeypatch.setattr(lora_deeds, "start_training", made.start)
    monkeypatch.setattr(lora_deeds, "stop_work", made.stop)
    monkeypatch.setattr(lora_deeds, "resume_work", made.resume)
    monkeypatch.setattr(lora_form, "memory_free", lambda *_: FREE)
    return made


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands()
    monkeypatch.setattr(errands, "begin", made.begin)
    return made


@pytest.fixture
def world(writer: Writer, data_dir: Path, deeds: Deeds) -> Path:
    fill(writer, data_dir)
    return data_dir


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "qwen2.5-7b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(QWEN))
    return folder
