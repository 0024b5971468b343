"""The keeper of one session of a sweep: `python -m tuning.keeper DATA_DIR SESSION_ID`."""

import asyncio
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.bench.client import Bench, open_bench
from engine.gpus.gpu import GpuReader
from engine.keeper.hold import hold
from engine.keeper.journal import Journal
from engine.keeper.secrets import take_secrets
from engine.keeper.term import close_row, run_keeper, taken_over, term
from engine.launch.environment import child_environ, with_client_key
from engine.launch.signed_adapters import signed_adapters
from engine.leftovers import end_abandoned
from engine.processes.process import MARKER_VARIABLE, boot_id
from engine.records import EngineError
from engine.samples.recorder import gpu_used
from store.errors import StoreError
from store.reader import Reader
from store.records import SessionRecord
from store.writer import Writer
from tuning.plans.plan_json import candidates_from_json
from tuning.records import Plan
from tuning.scheduling.budget import exhausted
from tuning.scheduling.schedule import BASELINE
from tuning.sessions import session_installation, session_plan
from tuning.sweeping.additions import why_not_added
from tuning.sweeping.block_runs import BlockRuns
from tuning.sweeping.controls import Controls, Interrupted
from tuning.sweeping.launching import Launching
from tuning.sweeping.leftovers import clear_up
from tuning.sweeping.on_finish import run_on_finish
from tuning.sweeping.session_judge import SessionJudge
from tuning.sweeping.sweep import Sweep

BUDGET_EVERY_S = 5.0


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
        self._environ = {**os.environ, **plan.server_env}
        self._gpu = GpuReader()
        self._bench: Bench | None = None
        self._clock = clock
        self._began = clock()
        self._used_before: float = float(session.raw.get("seconds_used", 0.0))
        self._bench_marker: str = session.raw.setdefault("bench_marker", uuid.uuid4().hex)
        self._judge = SessionJudge(reader, session.id, plan)
        self._sweep = self._make_sweep()
        self._terminated = False
        self._over = False

    def commands(self) -> dict[str, Any]:
        return {
            "status": self._status,
            "pause": self._pause,
            "resume": self._resume,
            "skip": self._skip,
            "add": self._add,
            "stop": self._stop,
        }

    @property
    def on_finish(self) -> str:
        """The person's command, once the session has come to an end that was no interruption from outside; else ""."""
        return self._plan.budget.on_finish if self._over and not self._terminated else ""

    def terminate(self, reason: str) -> None:
        self._terminated = True
        self._end(reason)

    def take_over(self) -> None:
        """Say that we run, before any command is answered. Raises StoreError where nothing can be written."""
        fields = taken_over(self._session.started_at)
        self._journal.writer.update(SessionRecord, self._id, **fields, boot_id=boot_id(), raw=self._session.raw)

    async def work(self) -> None:
        state, message = "failed", "the keeper ended unexpectedly; its log says why"
        try:
            used = gpu_used(self._gpu, self._environ)
            await clear_up(self._session, self._journal, self._reader, used)
            await end_abandoned(self._data_dir, self._journal, self._reader, used)
            await self._journal.event("resumed" if self._session.started_at else "started")
            await self._sweep.run()
            state, message = "done", ""
            self._session.raw["sentence"] = self._judge.sentence("done")
            await self._journal.event(self._session.raw["sentence"])
        except Interrupted:
            state, message = "stopped", self._controls.stop_reason or "stopped"
            self._session.raw["sentence"] = self._judge.sentence("stopped")
        except (EngineError, StoreError) as error:
            state, message = "failed", str(error)
            if self._controls.stop_reason is not None and self._journal.lost:
                state, message = "stopped", f"{self._controls.stop_reason}; {error}"
        finally:
            self._over = True
            try:
                if self._bench is not None:
                    await self._bench.close()
                self._gpu.close()
            finally:
                await close_row(self._journal, SessionRecord, self._id, state, message, self._used)

    def _used(self) -> dict[str, Any]:
        self._session.raw["seconds_used"] = self.seconds_used()
        return {"raw": self._session.raw}

    def _end(self, reason: str) -> None:
        self._controls.stop(reason)
        self._journal.end_within()

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
            BlockRuns(self._reader, self._id),
            signed_adapters(self._reader, self._data_dir),
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
            self._judge,
        )

    async def _open_bench(self) -> Bench:
        """The benchmark process, started when the first run needs it and kept for all."""
        if self._bench is None:
            base = child_environ(self._installation.bin_dir, os.environ) | self._plan.server_env
            environ = with_client_key(base) | {MARKER_VARIABLE: self._bench_marker}
            log_path = self._data_dir / "logs" / f"session-{self._id}-bench.log"
            self._bench = await open_bench(self._installation, environ, log_path)
        return self._bench

    def seconds_used(self) -> float:
        return self._used_before + self._clock() - self._began

    async def _gate(self) -> None:
        """Before each launch and run: note the time used, end when the budget is spent, hold while paused."""
        self._journal.note(SessionRecord, self._id, **self._used())
        self._mind_the_budget()
        self._controls.check()
        if not self._controls.paused:
            return
        await self._journal.update(
            SessionRecord, self._id, state="paused", message="paused; a server that runs stays up"
        )
        await self._journal.event("paused")
        await self._held()
        await self._journal.update(SessionRecord, self._id, state="running", message=None)
        await self._journal.event("goes on")

    async def _held(self) -> None:
        """While paused. The server that stays up costs on, so the budget can end that too."""

        async def mind() -> None:
            while True:
                await asyncio.sleep(BUDGET_EVERY_S)
                self._mind_the_budget()

        minding = asyncio.create_task(mind())
        try:
            await self._controls.while_paused()
        finally:
            minding.cancel()

    def _mind_the_budget(self) -> None:
        if (spent := exhausted(self._plan, self.seconds_used())) is not None:
            self._controls.stop(spent)

    async def _status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "paused": self._controls.paused,
            "candidate": self._controls.current_candidate,
            "blocked": self._journal.blocked,
            "seconds_used": self.seconds_used(),
        }

    async def _pause(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._controls.paused:
            return {"message": "paused already"}
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
        self._controls.skip(candidate)
        await self._sweep.leave(candidate, "skipped, as asked")
        return {"message": f"candidate {candidate} is left out from now on"}

    async def _add(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._over:
            raise EngineError("the sweep has ended: nothing can be added to it")
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
        self._end("stopped, as asked")
        if self._journal.blocked is not None:
            return {"message": f"stopping, though the store takes nothing now: {self._journal.blocked}"}
        return {"message": "stopping; what is measured is kept"}


async def keep(data_dir: Path, session_id: int, secrets: Mapping[str, str]) -> None:
    keeper: SessionKeeper | None = None
    try:
        with term(data_dir, "session", session_id) as ours:
            session = ours.reader.session(session_id)
            plan = session_plan(session, secrets, os.environ)
            keeper = SessionKeeper(data_dir, session, plan, ours.writer, ours.reader)
            keeper.take_over()
            await hold(keeper, ours.socket)
    finally:
        if keeper is not None and keeper.on_finish:
            run_on_finish(keeper.on_finish)


if __name__ == "__main__":
    handed_over = take_secrets(os.environ)  # before anything is started
    sys.exit(run_keeper(lambda data_dir, session_id: keep(data_dir, session_id, handed_over)))
