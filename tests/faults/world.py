"""A data directory in which a sweep on the stand-in runs, and what a test may ask and do to it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.keeper.client import is_running
from engine.processes.ports import is_free
from engine.processes.process import descendants, marked
from engine.records import ProcessIdentity
from engine.stop import end_leftovers
from store.database import open_reader
from store.errors import NotFound
from store.records import RunRecord, ServerRecord, SessionRecord

PLAN = """
name = "faults"
model = "{model}"

[server]
max-num-seqs = 8

[grid]
max-num-seqs = [2, 4, 6]

[[workload]]
name = "chat"
dataset = "random"
input_len = 8
output_len = 4
requests = 12
warmup = 1
repeats = 3

[decide]
blocks = {blocks}
"""

OF_A_SERVER = ("api", "core", "worker")
# A launch that was struck is started again four times at most: a kill more in one cell, and it is rightly given up.
STRUCK_AT_MOST = 3


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait for `condition`, looking often; fails the test with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


@dataclass
class World:
    """One session in one data directory. `environ` is joined to the environment of every program."""

    data_dir: Path
    environ: Mapping[str, str]
    session_id: int = 1
    ports: set[int] = field(default_factory=set)
    markers: set[str] = field(default_factory=set)

    def llmtune(self, *arguments: str, timeout: float = 60) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "tui.cli", *arguments, "--data-dir", str(self.data_dir)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **self.environ},
        )

    def follow(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """A terminal program that follows the session, to be killed."""
        return subprocess.Popen(
            [sys.executable, "-m", "tui.cli", *arguments, "--data-dir", str(self.data_dir)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **self.environ},
        )

    def started(self) -> bool:
        """Whether the session has a keeper; the database is there before the session is, and that before its keeper."""
        try:
            return self.session().keeper_pid is not None
        except NotFound:
            return False

    def session(self) -> SessionRecord:
        with open_reader(self.data_dir / "llmtune.db") as reader:
            return reader.session(self.session_id)

    def runs(self) -> list[RunRecord]:
        with open_reader(self.data_dir / "llmtune.db") as reader:
            return reader.runs(self.session_id)

    def servers(self) -> list[ServerRecord]:
        with open_reader(self.data_dir / "llmtune.db") as reader:
            found = reader.servers(session_id=self.session_id)
        self.ports.update(server.port for server in found)
        self.markers.update(server.marker for server in found if server.marker)
        return found

    def cell(self) -> tuple[int, int]:
        """Block and candidate of the latest server, (-1, -1) before the first."""
        servers = self.servers()
        cell = servers[-1].raw["cell"] if servers else {"block": -1, "candidate": -1}
        return cell["block"], cell["candidate"]

    def kept(self) -> bool:
        return is_running(self.data_dir, "session", self.session_id)

    def tree(self) -> dict[str, ProcessIdentity]:
        """The live processes by their part: keeper, bench, api, core, worker; as far as they are there now."""
        session = self.session()
        found: dict[str, ProcessIdentity] = {}
        if session.keeper_pid and session.keeper_start_ticks and session.boot_id and self.kept():
            found["keeper"] = ProcessIdentity(session.keeper_pid, session.keeper_start_ticks, session.boot_id)
        for process in marked(str(session.raw.get("bench_marker", ""))):
            found.setdefault("bench", process)
        server = next((each for each in self.servers() if each.state in ("starting", "ready")), None)
        if server is not None and server.marker:
            family = marked(server.marker)
            if any(process.pid == server.pid for process in family) and server.pid:
                found["api"] = next(process for process in family if process.pid == server.pid)
                below = descendants(server.pid)
                found.update(zip(("core", "worker"), below, strict=False))
        return found

    def planned(self) -> set[tuple[int, int, int, int]]:
        """The measured runs of every cell that was drawn: three in each."""
        cells = [cell for block in self.session().raw["blocks"] for cell in block]
        return {(cell["block"], cell["candidate"], cell["slot"], repeat) for cell in cells for repeat in range(3)}

    def counted(self) -> Counter[tuple[int, int, int, int]]:
        """How often each measured run has a result, by block, candidate, slot, repeat."""
        return Counter(
            (run.block, run.candidate, run.slot, run.repeat)
            for run in self.runs()
            if run.kind == "measured" and run.state == "done"
        )

    def nothing_left(self) -> None:
        """Assert that no process of the session lives and no port of it is held."""
        self.servers()
        markers = {*self.markers, str(self.session().raw.get("bench_marker", ""))} - {""}
        until(lambda: not any(marked(marker) for marker in markers), 20, "all processes of the session are gone")
        assert all(is_free("127.0.0.1", port) for port in self.ports)

    def clean_up(self) -> None:
        """End whatever a failed test left."""
        if not (self.data_dir / "llmtune.db").exists():
            return
        self.servers()
        session = self.session()
        if self.kept() and session.keeper_pid:
            os.kill(session.keeper_pid, signal.SIGKILL)
        for marker in {*self.markers, str(session.raw.get("bench_marker", ""))} - {""}:
            for process in marked(marker):
                os.kill(process.pid, signal.SIGCONT)
            asyncio.run(end_leftovers(None, None, marker, [], 2.0))
