"""Which flags an installation's `vllm serve` has: asked once of its own parser in its own Python, then remembered.

To ask means to import vLLM, ten seconds to several minutes: nothing that a person or a start waits for does it.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.launch.ask_python import ask_python
from engine.records import EngineError, Installation
from engine.text import clean

ASK_WITHIN_S = 300.0

# Where parser and arguments lie: vllm.utils and entrypoints.openai up to 0.11, argparse_utils from 0.12, launchers
# from 0.32 on.
_ASK = """\
import importlib, json
def first(names, attribute):
    for name in names:
        try:
            return getattr(importlib.import_module(name), attribute)
        except (ImportError, AttributeError):
            pass
    raise SystemExit("no " + attribute + " in " + ", ".join(names))
parser = first(("vllm.utils.argparse_utils", "vllm.utils"), "FlexibleArgumentParser")
make = first(("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args"), "make_arg_parser")
options = [each for action in make(parser())._actions for each in action.option_strings]
print("LLMTUNE_FLAGS " + json.dumps(options))
"""
_ANSWER = "LLMTUNE_FLAGS "
_FEWEST = 50  # vLLM 0.10 has more than 150; fewer is no answer


def known_flags(
    installation: Installation, ask: bool, environ: Mapping[str, str] | None = None
) -> frozenset[str] | None:
    """The long flags of `vllm serve` without their dashes ("max-num-seqs"), as remembered for this path, version and
    date of installation; None where they are not, unless `ask`. Raises EngineError if it was asked in vain."""
    environ = os.environ if environ is None else environ
    file, key = cache_file(environ), _key(installation)
    remembered = _read(file)
    if isinstance(flags := remembered.get(key), list):
        return frozenset(str(flag) for flag in flags)
    if not ask:
        return None
    asked = _asked(installation, environ)
    with suppress(OSError):  # a cache that cannot be written costs a second asking, no more
        _write(file, {**remembered, key: sorted(asked)})
    return asked


def cache_file(environ: Mapping[str, str]) -> Path:
    """`$XDG_CACHE_HOME/llmtune/flags.json`, by default under `~/.cache`."""
    home = environ.get("XDG_CACHE_HOME") or ""
    folder = Path(home) if os.path.isabs(home) else Path(environ.get("HOME") or "/") / ".cache"
    return folder / "llmtune" / "flags.json"


def _key(installation: Installation) -> str:
    """Changes with whatever installs another vLLM at the same place: its dist-info is written anew then."""
    python = Path(installation.python)
    written = [
        path.stat().st_mtime_ns
        for path in sorted(python.parent.parent.glob("lib*/python3*/site-packages/vllm*-*.dist-info"))
    ]
    return json.dumps([installation.python, installation.version, written])


def _asked(installation: Installation, environ: Mapping[str, str]) -> frozenset[str]:
    try:
        quiet = {**environ, "VLLM_LOGGING_LEVEL": "ERROR"}
        answer = ask_python(installation.python, installation.bin_dir, _ASK, quiet, ASK_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise EngineError(f"{installation.path} did not say its flags within {ASK_WITHIN_S:.0f} s") from None
    except OSError as error:
        raise EngineError(f"{installation.python} does not start: {error.strerror}") from None
    for line in answer.stdout.splitlines():
        if line.startswith(_ANSWER):
            options = json.loads(line.removeprefix(_ANSWER))
            flags = frozenset(option[2:] for option in options if option.startswith("--"))
            if len(flags) >= _FEWEST:
                return flags
    last = (answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"])[-1]
    raise EngineError(f"{installation.path} does not say its flags: {clean(last, 200)}")


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}  # not there yet, or written by somebody else: it is asked for again
    return found if isinstance(found, dict) else {}


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent)  # 0600; renamed, so that no reader sees a half
    with os.fdopen(descriptor, "w") as whole:
        json.dump(content, whole)
    os.replace(name, file)
