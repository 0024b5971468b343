"""The Python in which transformers and peft live: that of the vLLM installation unless another is named."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.launch.environment import child_environ
from engine.launch.installation import find_vllm
from lora.records import LoraError

STANDALONE = Path(__file__).resolve().parents[1] / "standalone"
"""Scripts for it. They import each other (a script's folder is first on its path) and nothing else of ours."""


@dataclass(frozen=True, slots=True)
class TrainingPython:
    """`bin_dir` goes first on the PATH of what is started."""

    python: str
    bin_dir: str

    def environ(self, base: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of a script there. Unbuffered: what it prints is read while it runs."""
        return child_environ(self.bin_dir, base) | {"PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}


def training_python(explicit: str | None, vllm: str | None, environ: Mapping[str, str]) -> TrainingPython:
    """`explicit` (a Python, or a virtual environment), else the Python of the vLLM that `find_vllm` finds.

    Whether the libraries are there, its first script tells. Raises LoraError, VllmNotFound, VllmTooOld.
    """
    if not explicit:
        installation = find_vllm(vllm, environ)
        return TrainingPython(installation.python, installation.bin_dir)
    found = Path(explicit).expanduser()
    if found.is_dir():
        found = next((found / "bin" / name for name in ("python", "python3") if (found / "bin" / name).exists()), found)
    path = str(found) if os.sep in explicit else shutil.which(explicit, path=environ.get("PATH", os.defpath))
    if path is None or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise LoraError(f"--python {explicit} is no Python: give an interpreter or a virtual environment")
    # Not resolved: a virtual environment's python is a link to one that lacks its packages.
    return TrainingPython(os.path.abspath(path), str(Path(os.path.abspath(path)).parent))
