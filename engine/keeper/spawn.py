"""Starting a keeper that outlives whoever started it."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from engine.keeper.client import answers, is_running
from engine.keeper.places import KeeperKind
from engine.records import EngineError
from engine.text import clean
from store.private_files import open_private

STARTING_WITHIN_S = 90.0  # our imports may come from a slow mount


def spawn_keeper(data_dir: Path, kind: KeeperKind, number: int, module: str, environ: Mapping[str, str]) -> int:
    """Run `python -m module DATA_DIR NUMBER` detached and return its pid once it holds its lock and answers.

    It gets its own session (setsid), so that neither the terminal's hang-up nor its Ctrl-C reaches it, no standard
    input, and a log in the data directory. Raises EngineError with the keeper's last words where it ended at once or
    does not answer in time; it is ended then.
    """
    if is_running(data_dir, kind, number):
        raise EngineError(f"{kind} {number} has a keeper already")
    log_path = keeper_log(data_dir, kind, number)
    try:
        process, log_begin = _start(log_path, [module, str(data_dir.absolute()), str(number)], environ)
    except OSError as error:
        raise EngineError(f"the keeper of {kind} {number} did not start: {error}") from error
    deadline = time.monotonic() + STARTING_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        if is_running(data_dir, kind, number) and answers(data_dir, kind, number):
            return process.pid
        time.sleep(0.05)
    if process.poll() == 0:
        return process.pid  # it had nothing to do and ended well
    process.kill()
    process.wait()
    raise EngineError(
        f"the keeper of {kind} {number} did not start: {_last_words(log_path, log_begin)} (log: {log_path})"
    )


def _start(log_path: Path, arguments: list[str], environ: Mapping[str, str]) -> "tuple[subprocess.Popen[bytes], int]":
    """The process, and where in the log its own words begin."""
    with os.fdopen(open_private(log_path), "ab") as log:
        begin = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",  # the caller's folder may go away
            env={**environ, "PYTHONUNBUFFERED": "1"},
        )
        return process, begin


def keeper_log(data_dir: Path, kind: KeeperKind, number: int) -> Path:
    return data_dir / "logs" / f"{kind}-{number}-keeper.log"


def _last_words(path: Path, begin: int) -> str:
    with path.open("rb") as log:
        log.seek(max(begin, path.stat().st_size - 4096, 0))
        lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return clean(lines[-1]) if lines else f"it said nothing within {STARTING_WITHIN_S:g} s"
