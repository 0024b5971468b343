"""A load generator as a child process in a session and process group of its own, its log straight to a file."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.records import BenchFailed
from engine.text import clean
from store.private_files import open_private

_ANSWER_LIMIT = 2**30  # bytes a line; with --save-detailed every generated text is in it
_TAIL_BYTES = 65_536
_LINE_CHARACTERS = 300
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Child:
    """The running process. `pid` is its process group too."""

    def __init__(self, process: asyncio.subprocess.Process, log_path: Path, log_start: int) -> None:
        self.process = process
        self.pid = process.pid
        self.log_path = log_path
        self._log_start = log_start

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    async def kill(self) -> None:
        """End the whole group at once, and wait until it is gone."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        await self.process.wait()

    def output(self) -> str:
        """The last 64 KiB of what it has written to its log since it was started."""
        return read_tail(self.log_path, self._log_start)

    async def ending(self) -> str:
        """How it ended, on one line, with the last thing that it said."""
        code = await self.process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        lines = [
            line for line in (clean(line, _LINE_CHARACTERS) for line in self.output().splitlines()) if line.strip()
        ]
        return f"{how}{f', {lines[-1]!r}' if lines else ''}; its log is {self.log_path}"


async def start_child(argv: Sequence[str], environ: Mapping[str, str], log_path: Path, *, pipes: bool) -> Child:
    """Start `argv` with `environ` as its whole environment. Standard error is appended to `log_path`, and so is
    standard output unless `pipes` are wanted. Raises BenchFailed if it cannot be started."""
    # An interpreter that is given a module or a script would else look for vllm beside it, or where we were started.
    child_environ = {**environ, **past_proxies(environ), "PYTHONSAFEPATH": "1"}
    try:
        log = open_private(log_path)
    except OSError as error:
        raise BenchFailed(f"the benchmark's log {log_path} cannot be written: {error.strerror}") from error
    log_start = os.fstat(log).st_size
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=child_environ,
            stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipes else log,
            stderr=log,
            start_new_session=True,
            limit=_ANSWER_LIMIT,
        )
    except OSError as error:
        raise BenchFailed(f"the benchmark cannot be started with {argv[0]}: {error.strerror}") from error
    finally:
        os.close(log)
    return Child(process, log_path, log_start)


def past_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """What keeps a proxy of `environ` out of the way to a server on this machine: vLLM's client heeds proxies even for
    loopback addresses. The lower-case name counts where both are set (urllib.request.getproxies_environment)."""
    listed = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return {"no_proxy": listed if listed == "*" else ",".join(filter(None, [listed, *_LOOPBACK]))}


def read_tail(path: Path, start: int) -> str:
    """The text of `path` from byte `start`, at most its last 64 KiB; "" if somebody deleted it."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
