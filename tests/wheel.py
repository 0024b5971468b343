"""The wheel, built as `make wheel` builds it."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("tui", "engine", "tuning", "lora", "store")


def build_wheel(folder: Path) -> Path:
    """The wheel, built under `folder` from a copy: a build folder left in the checkout would put deleted modules in."""
    source, out = folder / "source", folder / "wheel"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for room in (*ROOMS, "tests"):
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    done = subprocess.run([*command, str(out), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built
