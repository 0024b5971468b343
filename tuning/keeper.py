"""The keeper of one session of a sweep: `python -m tuning.keeper DATA_DIR SESSION_ID`."""

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.bench.client import Bench, open_bench
from engine.environment import child_environ
from engine.gpu import GpuReader
from engine.keeper.hold import hold
from engine.keeper.journal import Journal
from engine.keeper.secrets import take_secrets
from engine.leftovers import end_leftover_server
from engine.process import MARKER_VARIABLE, identify
from engine.records import EngineError
from engine.stop import end_leftovers
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.errors import StoreError
from store.location import database_file
from store.reader import Reader
from store.records import LaunchRecord, RunRecord, SessionRecord
from store.writer import Writer
from tuning.additions import why_not_added
from tuning.budget import exhausted
from tuning.controls import Controls, Interrupted
from tuning.launching import Launching
from tuning.plan_json import candidates_from_json
from tuning.records import Plan
from tuning.sessions import session_installation, session_plan
from tuning.sweep import BASELINE, BaselineFailed, Sweep

ON_FINISH_WITHIN_S = 600


class SessionKeeper:
    """Carries one session out. Commands come in on the socket; all state that matters is in the store."""

    def __init__(
        self,
        data_dir: Path,
        session: SessionRecord,
        plan: Plan,
        writer: Writer,
        reader: Reader,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert session.id is not None
        self._data_dir = data_dir
        self._id: int = session.id
        self._session = session
        self._plan = plan
        self._reader = reader
        self._journal = Journal(writer, session_id=session.id)
        self._controls = Controls()
        self._installation = session_installation(session)
        self._gpu = GpuReader()
        self._bench: Bench | None = None
        self._clock = clock
        self._began = clock()
        self._used_before: float = float(session.raw.get("seconds_used", 0.0))
        self._bench_marker: str = session.raw.setdefault("bench_marker", uuid.uuid4().hex)
        self._sweep = self._make_sweep()

    def commands(self) -> dict[str, Any]:
        return {
            "status": self._status,
            "pause": self._pause,
            "resume": self._resume,
            "skip": self._skip,
            "add": self._add,
            "stop": self._stop,
        }

    def terminate(self, reason: str) -> None:
        self._controls.stop(reason)

    async def work(self) -> None:
        await self._begin()
        state, message = "failed", "the keeper ended unexpectedly; its log says why"
        try:
            await self._sweep.run()
            state, message = "done", ""
        except Interrupted:
            state, message = "stopped", self._controls.stop_reason or "stopped"
        except (BaselineFailed, EngineError, StoreError) as error:
            state, message = "failed", str(error)
            await self._journal.event(message, "error")
        finally:
            if self._bench is not None:
                await self._bench.close()
            self._gpu.close()
            await self._journal.update(
                SessionRecord, self._id, state=state, message=message or None, finished_at=utc_now()
            )
            await self._journal.event(state + (f": {message}" if message else ""))
        self._on_finish()

    async def _begin(self) -> None:
        """Take the session over: end what an earlier keeper left, close its open rows, say that we run."""
        for server in self._reader.servers(session_id=self._id, active=True):
            done = await end_leftover_server(self._journal, server)
            await self._journal.event(done, "warning", server_id=server.id)
        await end_leftovers(None, None, self._bench_marker, [])
        for launch in self._reader.launches(self._id):
            if launch.id is not None and launch.state in ("starting", "ready"):
                await self._journal.update(LaunchRecord, launch.id, state="abandoned", finished_at=utc_now())
        for run in self._reader.runs(self._id):
            if run.id is not None and run.state == "running":
                await self._journal.update(
                    RunRecord, run.id, state="abandoned", reason="its keeper ended", finished_at=utc_now()
                )
        myself = identify(os.getpid())
        await self._journal.update(
            SessionRecord,
            self._id,
            state="running",
            message=None,
            finished_at=None,
            started_at=self._session.started_at or utc_now(),
            keeper_pid=os.getpid(),
            keeper_start_ticks=myself.start_ticks if myself else None,
            boot_id=myself.boot_id if myself else None,
            raw=self._session.raw,
        )
        await self._journal.event("resumed" if self._session.started_at else "started")

    def _make_sweep(self) -> Sweep:
        launching = Launching(
            self._id,
            self._plan,
            self._installation,
            self._journal,
            self._controls,
            self._open_bench,
            self._gpu,
            self._data_dir,
            self._gate,
        )
        return Sweep(
            self._session,
            self._plan,
            candidates_from_json(self._session.candidates),
            self._journal,
            self._controls,
            launching.launch,
            self._gate,
            lambda: (self._reader.launches(self._id), self._reader.runs(self._id)),
        )

    async def _open_bench(self) -> Bench:
        """The benchmark process, started when the first run needs it and kept for all."""
        if self._bench is None:
            environ = child_environ(self._installation.bin_dir, os.environ) | self._plan.server_env
            environ[MARKER_VARIABLE] = self._bench_marker
            log_path = self._data_dir / "logs" / f"session-{self._id}-bench.log"
            self._bench = await open_bench(self._installation, environ, log_path)
        return self._bench

    def seconds_used(self) -> float:
        return self._used_before + self._clock() - self._began

    async def _gate(self) -> None:
        """Before each launch and run: note the time used, end when the budget is spent, hold while paused."""
        self._session.raw["seconds_used"] = self.seconds_used()
        self._journal.note(SessionRecord, self._id, raw=self._session.raw)
        spent = exhausted(self._plan, self.seconds_used())
        if spent is not None and self._controls.stop_reason is None:
            self._controls.stop(spent)
        self._controls.check()
        if not self._controls.paused:
            return
        await self._journal.update(
            SessionRecord, self._id, state="paused", message="paused; a server that runs stays up"
        )
        await self._journal.event("paused")
        await self._controls.while_paused()
        await self._journal.update(SessionRecord, self._id, state="running", message=None)
        await self._journal.event("goes on")

    def _on_finish(self) -> None:
        """The person's own command, such as one that stops the pod; its output goes to our log."""
        command = self._plan.budget.on_finish
        if not command or (self._controls.stop_reason or "").startswith("the keeper was sent"):
            return
        print(f"{utc_now()} on_finish: {command}", flush=True)
        try:
            subprocess.run(command, shell=True, check=False, timeout=ON_FINISH_WITHIN_S, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            print(f"{utc_now()} on_finish did not end within {ON_FINISH_WITHIN_S} s", flush=True)

    async def _status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "paused": self._controls.paused,
            "candidate": self._controls.current_candidate,
            "blocked": self._journal.blocked,
            "seconds_used": self.seconds_used(),
        }

    async def _pause(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._controls.pause()
        self._journal.note(SessionRecord, self._id, message="pauses after the run in hand")
        return {"message": "pauses after the run in hand"}

    async def _resume(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._controls.resume()
        self._journal.note(SessionRecord, self._id, message=None)
        return {"message": "goes on"}

    async def _skip(self, request: Mapping[str, Any]) -> dict[str, Any]:
        candidate = request.get("candidate")
        known = {each["index"] for each in self._reader.session(self._id).candidates}
        if candidate not in known or not isinstance(candidate, int):
            raise EngineError(f"no candidate {candidate!r} in this session; it has {min(known)} to {max(known)}")
        if candidate == BASELINE:
            raise EngineError("the baseline cannot be skipped: every candidate is compared with it")
        await self._sweep.leave(candidate, "skipped, as asked")
        self._controls.skip(candidate)
        return {"message": f"candidate {candidate} is left out from now on"}

    async def _add(self, request: Mapping[str, Any]) -> dict[str, Any]:
        settings = request.get("settings")
        if not isinstance(settings, dict) or not settings:
            raise EngineError('add needs settings, such as {"max-num-seqs": 64}')
        wrong = why_not_added(
            self._plan, settings, [each["settings"] for each in self._reader.session(self._id).candidates]
        )
        if wrong is not None:
            raise EngineError(wrong)
        index = await self._sweep.add(settings)
        return {"message": f"candidate {index} is launched last in this block", "candidate": index}

    async def _stop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._controls.stop("stopped, as asked")
        return {"message": "stopping; what is measured is kept"}


async def keep(data_dir: Path, session_id: int, secrets: Mapping[str, str]) -> None:
    database = database_file(data_dir)
    with open_writer(database) as writer, open_reader(database) as reader:
        session = reader.session(session_id)
        plan = session_plan(session, secrets, os.environ)
        keeper = SessionKeeper(data_dir, session, plan, writer, reader)
        await hold(data_dir, "session", session_id, keeper.commands(), keeper.work, keeper.terminate)


def main() -> int:
    data_dir, session_id = Path(sys.argv[1]), int(sys.argv[2])
    try:
        asyncio.run(keep(data_dir, session_id, take_secrets(os.environ)))
    except (EngineError, StoreError) as error:
        print(error, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
