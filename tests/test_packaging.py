"""The wheel: what is in it, and that it works where the checkout is not."""

import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("tui", "engine", "tuning", "lora", "store")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: a build folder left in the checkout would put deleted modules into it."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for room in (*ROOMS, "tests"):
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__"))
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    done = subprocess.run([*command, str(out), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


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


@pytest.mark.long
def test_it_runs_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """With its dependencies as the metadata names them, away from the checkout."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, cwd=tmp_path)
    command = [tmp_path / "env" / "bin" / "llmtune"]
    out = subprocess.run([*command, "--help"], check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "sweep" in out
    out = subprocess.run([*command, "sessions"], check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "nothing has been recorded" in out
    subprocess.run([python, "-c", "import tui.app, engine.bench.client, tuning.keeper"], check=True, cwd=tmp_path)
