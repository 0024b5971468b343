"""One server together with its row in the store: every step of its life is written when it happens."""

import asyncio
import errno
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.gpu_holders import LookAtGpus, holders, smallest_total_gib
from engine.keeper.journal import Journal
from engine.processes.watchdog import LAUNCH_STILL_S, RUN_STILL_S, activity, until_still
from engine.race import unless
from engine.records import EngineError, Installation, LaunchFailed, LogFacts, ModelUnfit, PortTaken, ServerSpec
from engine.samples.recorder import Recorder
from engine.server import Server
from engine.stop import ReadGpuUsed
from engine.text import redact_argv
from store.clock import utc_now
from store.records import ServerRecord

DESCENDANTS_EVERY_S = 2.0
_WANTED_MEMORY = frozenset({"free_memory_short", "memory_race", "oom_load"})


def _class_of(error: EngineError | OSError) -> str:
    """The class of what stood in the way before there was a process."""
    if isinstance(error, PortTaken):
        return "port_in_use"
    if isinstance(error, ModelUnfit):
        return "checkpoint_invalid"
    number = error.errno if isinstance(error, OSError) else getattr(error.__cause__ or error.__context__, "errno", None)
    return {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_quota"}.get(number or 0, "unknown")


def facts_json(facts: LogFacts) -> dict[str, Any]:
    """The facts that are known, for the row; what the log has not said is left out."""
    return {key: value for key, value in asdict(facts).items() if value not in (None, {}, False)}


class Supervised:
    """A started server, its row kept up to date. Made by `start`, which leaves nothing running where it raises; ended
    by `stop`, which may be called twice."""

    def __init__(self, server: Server, journal: Journal, server_id: int, look_at_gpus: LookAtGpus = lambda: ()) -> None:
        self.server = server
        self._look_at_gpus = look_at_gpus
        self.server_id = server_id
        self._journal = journal
        self._stopping: asyncio.Task[None] | None = None
        self._failure: dict[str, Any] = {}  # the row's fields, once the server has failed

    @classmethod
    async def start(
        cls,
        journal: Journal,
        server_id: int,
        installation: Installation,
        spec: ServerSpec,
        log_path: Path,
        marker: str,
        look_at_gpus: LookAtGpus = lambda: (),
    ) -> "Supervised":
        """Start the process and record who it is. Its marker is in the row already, so that it can be found even if
        we die between the two. Raises LaunchFailed (port taken, command missing); the row then says failed.

        `look_at_gpus` reads the GPUs that the server sees: a failure for want of their memory names who holds it.
        """
        try:
            server = await Server.start(installation, spec, log_path=log_path, marker=marker)
        except (EngineError, OSError) as error:
            failure = LaunchFailed(str(error), _class_of(error))
            await journal.update(ServerRecord, server_id, **_failure_fields(failure))
            raise failure from error
        server.gpu_total_gib = smallest_total_gib(look_at_gpus())
        supervised = cls(server, journal, server_id, look_at_gpus)
        try:
            await journal.update(
                ServerRecord,
                server_id,
                command=redact_argv(server.argv),
                env=server.env,
                pid=server.identity.pid,
                start_ticks=server.identity.start_ticks,
                boot_id=server.identity.boot_id,
                started_at=utc_now(),
            )
        except BaseException:
            await supervised.stop()
            raise
        return supervised

    async def wait_ready(self, timeout_s: float, on_stage: Callable[[str], None] = lambda stage: None) -> LogFacts:
        """Wait until it serves; stages and facts are written as the log tells them. Raises LaunchFailed."""

        def stage(name: str, facts: LogFacts) -> None:
            on_stage(name)
            self._journal.note(ServerRecord, self.server_id, facts={**facts_json(facts), "stage": name})

        watcher = asyncio.create_task(self._watch_descendants())
        try:
            facts = await unless(self.server.wait_ready(timeout_s, stage), self._watch_loading())
        except LaunchFailed as error:
            failure = self._with_holders(error)
            await self._fail(failure)
            raise failure from None
        finally:
            watcher.cancel()
            await asyncio.wait({watcher})
        await self._journal.update(
            ServerRecord,
            self.server_id,
            state="ready",
            ready_at=utc_now(),
            descendants=self._descendants(),
            facts={**facts_json(facts), "stage": "ready"},
        )
        return facts

    async def stop(self, grace_s: float = 30.0, read_gpu_used: ReadGpuUsed | None = None) -> None:
        """End the server and everything it started, and wait until port and GPU memory are free.

        Carried to its end also where the caller is cancelled meanwhile: a stop that was given up would leave a server.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(grace_s, read_gpu_used))
        cancelled = False
        while not self._stopping.done():
            try:
                await asyncio.wait({self._stopping})
            except asyncio.CancelledError:
                cancelled = True
        self._stopping.result()
        if cancelled:
            raise asyncio.CancelledError

    async def _stop(self, grace_s: float, read_gpu_used: ReadGpuUsed | None) -> None:
        if not self._failure:
            self._journal.note(ServerRecord, self.server_id, state="stopping")
        try:
            report = await self.server.stop(grace_s, read_gpu_used=read_gpu_used)
        except EngineError as error:
            await self._fail(LaunchFailed(str(error)))
            raise
        if report.survivors or report.port_free is False or report.gpu_flat is False:
            await self._journal.event(f"server {self.server_id}: {report.summary()}", "warning", self.server_id)
        # A failure is written once more: what was to write it may have been cut short.
        ending = {"state": "stopped", **self._failure, "stopped_at": utc_now(), "exit_code": report.exit_code}
        await self._journal.update(ServerRecord, self.server_id, **ending)

    async def watch(self, every_s: float) -> None:
        """Until the server ends by itself, which raises LaunchFailed."""
        while (code := self.server.poll()) is None:  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(every_s)
        explanation = self.server.explain(code)
        cause = explanation.cause or f"exit code {code}; its log is {self.server.log_path}"
        error = LaunchFailed(
            f"the server ended by itself: {cause}", explanation.failure_class or "unknown", code, explanation.numbers
        )
        await self._fail(error)
        raise error

    async def watch_progress(self, recorder: Recorder, still_s: float = RUN_STILL_S) -> None:
        """While requests run: until not one token, prompt or generated, has come for `still_s`; raises LaunchFailed.

        /health answers 200 for an engine that hangs; its counters stand still.
        """
        await until_still(lambda: recorder.progress, still_s)
        error = LaunchFailed(f"the server has requests, but has computed no token for {still_s:.0f} s", "stalled")
        await self._fail(error)
        raise error

    async def _watch_loading(self) -> None:
        """While it loads: until nothing has moved for LAUNCH_STILL_S; raises LaunchFailed."""

        def look() -> tuple[int, int, int]:
            return activity([self.server.identity, *self.server.descendants()], self.server.log_path)

        await until_still(look, LAUNCH_STILL_S)
        minutes = LAUNCH_STILL_S / 60
        raise LaunchFailed(
            f"the start stands still: for {minutes:.0f} minutes no log line, no processor time and nothing read; "
            f"last lines: {self.server.log_path}",
            "stalled",
        )

    def _with_holders(self, error: LaunchFailed) -> LaunchFailed:
        """The failure, and who holds the GPU memory that it wanted."""
        if error.failure_class not in _WANTED_MEMORY:
            return error
        ours = {self.server.identity.pid, *(process.pid for process in self.server.descendants())}
        if (who := holders(self._look_at_gpus(), ours)) is None:
            return error
        return LaunchFailed(f"{error} GPU memory held: {who}.", error.failure_class, error.exit_code, error.numbers)

    async def _fail(self, error: LaunchFailed) -> None:
        self._failure = {**_failure_fields(error), "facts": facts_json(self.server.facts())}
        await self._journal.update(ServerRecord, self.server_id, **self._failure)

    async def _watch_descendants(self) -> None:
        # Written while it loads, since what is killed before it is ready leaves children too.
        known: list[list[int]] = []
        while True:
            await asyncio.sleep(DESCENDANTS_EVERY_S)
            found = self._descendants()
            if found != known:
                known = found
                self._journal.note(ServerRecord, self.server_id, descendants=found)

    def _descendants(self) -> list[list[int]]:
        return [[child.pid, child.start_ticks] for child in self.server.descendants()]


def _failure_fields(error: LaunchFailed) -> dict[str, Any]:
    return {
        "state": "failed",
        "failure_class": error.failure_class,
        "failure": str(error),
        "exit_code": error.exit_code,
        "stopped_at": utc_now(),
    }
