"""A few lines of code, run by the Python of a vLLM installation."""

import subprocess
from collections.abc import Mapping

from engine.launch.environment import child_environ


def ask_python(
    python: str, bin_dir: str, code: str, environ: Mapping[str, str], within_s: float
) -> "subprocess.CompletedProcess[str]":
    """What it printed and how it ended. Raises OSError where that Python does not start, and TimeoutExpired."""
    return subprocess.run(
        [python, "-c", code],
        env=child_environ(bin_dir, environ),
        cwd="/",  # the folder that we were started in must not hide a package of theirs
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=within_s,
        check=False,
    )
