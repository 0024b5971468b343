"""Find a vLLM: which command starts it, which Python it runs in, which version it is. vLLM itself is never imported
here or there: that takes from ten seconds to a minute; its dist-info is read by its own Python instead."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.launch.ask_python import ask_python
from engine.records import Installation, VllmNotFound, VllmTooOld

OLDEST = (0, 10)
MODULE = "vllm.entrypoints.cli.main"

_QUERY = """\
import importlib.metadata as metadata, json
try:
    version = metadata.version("vllm")
except metadata.PackageNotFoundError:
    version = None
print(json.dumps(version))
"""
_QUERY_TIMEOUT_S = 60.0
_HOW = "give --vllm (or LLMTUNE_VLLM) the path of a vllm command, a python or a virtual environment that has vLLM"


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    python: str
    command: tuple[str, ...]
    bin_dir: str


def find_vllm(explicit: str | None, environ: Mapping[str, str]) -> Installation:
    """The vLLM to use: `explicit` (a vllm script, a python, or a virtual environment), else LLMTUNE_VLLM, else `vllm`
    on PATH, else the environment that we run in. `environ` is that of the caller; its PYTHONPATH counts, so an
    installation made with `pip install --target` is found.

    Raises VllmNotFound or VllmTooOld (older than 0.10), each with one line that says what to do.
    """
    wanted = explicit or environ.get("LLMTUNE_VLLM")
    if wanted:
        return _ask(_locate(wanted, environ), environ)
    on_path = shutil.which("vllm", path=environ.get("PATH", os.defpath))
    if on_path:
        return _ask(_locate(on_path, environ), environ)
    found = _Found(sys.executable, sys.executable, (sys.executable, "-m", MODULE), str(Path(sys.executable).parent))
    try:
        return _ask(found, environ)
    except VllmNotFound:
        raise VllmNotFound(f"no vLLM on PATH or beside llmtune: {_HOW}") from None


def version_numbers(version: str) -> tuple[int, int] | None:
    """`(0, 25)` of "0.25.1"; None for a build from an untagged checkout ("0.1.dev1+g…") or a version that is no number,
    of which nobody can say how old it is."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    if match is None or re.match(r"0\.(0|1)\.?(0\.)?dev", version):
        return None
    return int(match[1]), int(match[2])


def script_interpreter(script: Path, environ: Mapping[str, str]) -> str | None:
    """The Python of a console script, from its first lines; None if they name none.

    Three forms: `#!/venv/bin/python`, `#!/usr/bin/env python3`, and for paths that are too long or hold spaces
    `#!/bin/sh` with `'''exec' "/venv/bin/python" "$0" "$@"` on the second line (pip, distlib; uv's relocatable
    form names the folder by `dirname "$0"`). Raises OSError if the file cannot be read.
    """
    with script.open("rb") as file:
        lines = file.read(4096).decode(errors="replace").splitlines()
    if not lines or not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if not words:
        return None
    program = os.path.basename(words[0])
    if program.startswith("python"):
        return words[0]
    if program == "env":
        name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        return shutil.which(name, path=environ.get("PATH", os.defpath)) if name.startswith("python") else None
    if len(lines) > 1 and (trick := re.match(r"'''exec'\s+(.*)", lines[1])):
        return _exec_target(trick[1], script)
    return None


def _exec_target(rest: str, script: Path) -> str | None:
    if "$(dirname" in rest:
        tail = re.search(r"""/['"]?([\w.+/-]+?)['"]?\s+"\$0\"""", rest)
        return str(script.resolve().parent / tail[1]) if tail else None
    try:
        words = shlex.split(rest)
    except ValueError:
        return None
    return words[0] if words else None


def _locate(wanted: str, environ: Mapping[str, str]) -> _Found:
    path = Path(os.path.abspath(os.path.expanduser(wanted)))
    if os.sep not in wanted and not path.exists():
        on_path = shutil.which(wanted, path=environ.get("PATH", os.defpath))
        path = Path(on_path) if on_path else path
    asked = str(path)
    if path.is_dir():
        path = _in_venv(path)
    if not path.is_file():
        raise VllmNotFound(f"{wanted} does not exist: {_HOW}")
    if not os.access(path, os.R_OK | os.X_OK):
        raise VllmNotFound(f"{path} may not be read and run by this user: {_HOW}")
    if path.name.startswith("python"):
        return _Found(asked, str(path), (str(path), "-m", MODULE), str(path.parent))
    try:
        interpreter = script_interpreter(path, environ)
    except OSError as error:
        raise VllmNotFound(f"{path} cannot be read ({error.strerror}): {_HOW}") from None
    beside = path.resolve().parent
    if interpreter is None and (beside / "python").exists():
        interpreter = str(beside / "python")  # a wrapper in the shell beside its Python
    if interpreter is None:
        raise VllmNotFound(f"{path} does not say which Python it runs in: give --vllm that Python instead")
    return _Found(asked, interpreter, (str(path),), str(beside))


def _in_venv(folder: Path) -> Path:
    for name in ("bin/vllm", "bin/python", "bin/python3", "vllm", "python"):
        if (folder / name).is_file():
            return folder / name
    raise VllmNotFound(f"{folder} holds neither bin/vllm nor bin/python: {_HOW}")


def _ask(found: _Found, environ: Mapping[str, str]) -> Installation:
    path = found.path
    try:
        answer = ask_python(found.python, found.bin_dir, _QUERY, environ, _QUERY_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise VllmNotFound(f"{found.python} did not say its vLLM version within {_QUERY_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise VllmNotFound(f"{found.python}, the Python of {path}, does not start ({error.strerror}): {_HOW}") from None
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"])[-1]
        raise VllmNotFound(f"{found.python}, the Python of {path}, does not work: {last}")
    try:
        version = json.loads(answer.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise VllmNotFound(f"{found.python} is not a Python: {_HOW}") from None
    if not isinstance(version, str):
        raise VllmNotFound(f"{found.python} has no vLLM installed: {_HOW}")
    numbers = version_numbers(version)
    if numbers is not None and numbers < OLDEST:
        raise VllmTooOld(f"vLLM {version} at {path} is too old: llmtune needs 0.10 or newer, upgrade it or {_HOW}")
    return Installation(path, found.python, found.command, found.bin_dir, version)
