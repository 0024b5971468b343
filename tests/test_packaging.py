"""What is in the wheel, and what it asks for."""

import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.wheel import ROOMS, ROOT, build_wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_it_holds_every_file_of_the_rooms_and_no_tests(names: set[str]) -> None:
    own = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == own
    assert any(name.endswith(".tcss") for name in packed)


def test_it_names_the_command_and_the_licence(wheel: Path, names: set[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
        assert "llmtune = tui.cli:main" in archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    assert "Name: llmtune-vllm" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert f"{info}/licenses/LICENSE" in names


def test_vllm_and_torch_are_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = " ".join(project["dependencies"])
    assert not any(name in needed for name in ("vllm", "torch", "transformers", "peft", "bitsandbytes"))
    assert {"vllm", "lora"} <= set(project["optional-dependencies"])
