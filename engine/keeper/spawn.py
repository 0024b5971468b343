"""Starting a keeper that outlives whoever started it."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from engine.keeper.client import is_running
from engine.keeper.places import KeeperKind, keeper_places
from engine.records import EngineError
from engine.text import clean

STARTING_WITHIN_S = 30.0


def spawn_keeper(data_dir: Path, kind: KeeperKind, number: int, module: str, environ: Mapping[str, str]) -> int:
    """Run `python -m module DATA_DIR NUMBER` detached and return its pid once it holds its lock and answers.

    It gets its own session (setsid), so that neither the terminal's hang-up nor its Ctrl-C reaches it, no standard
    input, and a log in the data directory. Raises EngineError with the keeper's last words where it ended at once.
    """
    if is_running(data_dir, kind, number):
        raise EngineError(f"{kind} {number} has a keeper already")
    log_path = keeper_log(data_dir, kind, number)
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        log_begin = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(data_dir), str(number)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",  # the caller's folder may go away
            env={**environ, "PYTHONUNBUFFERED": "1"},
        )
    socket_path = keeper_places(data_dir, kind, number).socket
    deadline = time.monotonic() + STARTING_WITHIN_S
    while time.monotonic() < deadline:
        if is_running(data_dir, kind, number) and socket_path.exists():
            return process.pid
        if process.poll() is not None:
            break
        time.sleep(0.05)
    if process.poll() == 0:
        return process.pid  # it had nothing to do and ended well
    raise EngineError(
        f"the keeper of {kind} {number} did not start: {_last_words(log_path, log_begin)} (log: {log_path})"
    )


def keeper_log(data_dir: Path, kind: KeeperKind, number: int) -> Path:
    return data_dir / "logs" / f"{kind}-{number}-keeper.log"


def _last_words(path: Path, begin: int) -> str:
    with path.open("rb") as log:
        log.seek(max(begin, path.stat().st_size - 4096, 0))
        lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return clean(lines[-1]) if lines else f"it said nothing within {STARTING_WITHIN_S:g} s"
