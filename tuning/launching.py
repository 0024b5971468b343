"""One cell of a sweep: a fresh launch of one candidate, and its runs, workload after workload."""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine.bench.client import Bench
from engine.gpu import GpuReader
from engine.hand_servers import server_log, spec_json
from engine.keeper.journal import Journal
from engine.ports import free_port
from engine.readiness import api_key
from engine.recorder import Recorder, gpu_used
from engine.records import (
    BenchFailed,
    BenchOutcome,
    BenchRequest,
    EngineError,
    Installation,
    LaunchFailed,
    ServerSpec,
)
from engine.supervise import Supervised
from engine.text import clean, redact_env
from store.clock import utc_now
from store.records import LaunchRecord, RunRecord, SampleRecord, ServerRecord
from tuning.acceptance import rejection
from tuning.controls import Controls, Interrupted
from tuning.records import Candidate, Cell, Plan, PlannedRun, Workload
from tuning.run_metrics import run_metrics
from tuning.seeds import retry_seed
from tuning.workload_args import bench_argv

READY_WITHIN_S = 3600.0
LOOK_EVERY_S = 0.5
RUN_WITHIN_S = 3600.0  # beyond what the request rate alone takes


def candidate_spec(plan: Plan, candidate: Candidate, host: str, port: int) -> ServerSpec:
    """The baseline's flags with the candidate's put over them."""
    flags = {**plan.server, **candidate.settings}
    flags.pop("host", None)
    flags.pop("port", None)
    return ServerSpec(
        model=plan.model, host=host, port=port, flags=flags, served_name=plan.served_name, env=dict(plan.server_env)
    )


class Launching:
    """Makes launches for one session. The bench process and the GPU reader outlive the single launch.

    `gate` is awaited before each run: it holds while paused and raises Interrupted when the sweep is to end.
    """

    def __init__(
        self,
        session_id: int,
        plan: Plan,
        installation: Installation,
        journal: Journal,
        controls: Controls,
        bench: Callable[[], Awaitable[Bench]],
        gpu: GpuReader,
        data_dir: Path,
        gate: Callable[[], Awaitable[None]],
    ) -> None:
        self._session_id = session_id
        self._plan = plan
        self._installation = installation
        self._journal = journal
        self._controls = controls
        self._bench = bench
        self._gpu = gpu
        self._data_dir = data_dir
        self._gate = gate
        self._environ = {**os.environ, **plan.server_env}

    async def launch(self, cell: Cell, candidate: Candidate, attempt: int, runs: Sequence[PlannedRun]) -> None:
        """Start the candidate's server, make `runs` in their order, stop the server.

        Raises LaunchFailed (recorded), Interrupted and whatever else went wrong (the launch is recorded as abandoned).
        """
        port = free_port("127.0.0.1", int(self._plan.server.get("port", 8000)))
        spec = candidate_spec(self._plan, candidate, "127.0.0.1", port)
        server_id = await self._insert_server(spec, candidate, cell)
        launch_id = await self._journal.insert(
            LaunchRecord(
                session_id=self._session_id,
                block=cell.block,
                position=cell.position,
                candidate=cell.candidate,
                slot=cell.slot,
                attempt=attempt,
                state="starting",
                server_id=server_id,
                started_at=utc_now(),
            )
        )
        try:
            await self._serve(cell, spec, server_id, launch_id, runs)
        except LaunchFailed as error:
            await self._end(launch_id, "failed", failure=str(error), failure_class=error.failure_class)
            raise
        except BaseException as error:
            await self._end(launch_id, "abandoned", failure=_why(error))
            raise
        await self._end(launch_id, "done")

    async def _serve(
        self,
        cell: Cell,
        spec: ServerSpec,
        server_id: int,
        launch_id: int,
        runs: Sequence[PlannedRun],
    ) -> None:
        # The marker stands in the row before the process is there, so that it is found whenever we die.
        log_path, marker = server_log(self._data_dir, server_id), uuid.uuid4().hex
        await self._journal.update(ServerRecord, server_id, marker=marker, log_path=str(log_path))
        supervised = await Supervised.start(self._journal, server_id, self._installation, spec, log_path, marker)
        try:
            async with Recorder(
                self._journal, server_id, supervised.server.base_url, self._gpu, self._environ,
                api_key(spec, os.environ),
            ) as recorder:  # fmt: skip
                await self._controls.or_cut(supervised.wait_ready(READY_WITHIN_S))
                await self._journal.update(LaunchRecord, launch_id, state="ready", ready_at=utc_now())
                for planned in runs:
                    await self._gate()
                    await self._measure(cell, spec, launch_id, planned, supervised, recorder)
        finally:
            await supervised.stop(read_gpu_used=gpu_used(self._gpu, self._environ))

    async def _measure(
        self,
        cell: Cell,
        spec: ServerSpec,
        launch_id: int,
        planned: PlannedRun,
        supervised: Supervised,
        recorder: Recorder,
    ) -> None:
        """One run, and once again with another seed where a measured one had to be rejected."""
        workload = next(each for each in self._plan.workloads if each.name == planned.workload)
        reason = await self._run(cell, spec, launch_id, planned, workload, supervised, recorder)
        if reason is not None and planned.kind == "measured":
            await self._journal.event(f"{self._where(cell, planned)} rejected: {reason}; once more", "warning")
            await self._gate()
            again = replace(planned, seed=retry_seed(planned.seed))
            reason = await self._run(cell, spec, launch_id, again, workload, supervised, recorder)
        if reason is not None:
            await self._journal.event(f"{self._where(cell, planned)} rejected: {reason}", "warning")

    async def _run(
        self,
        cell: Cell,
        spec: ServerSpec,
        launch_id: int,
        planned: PlannedRun,
        workload: Workload,
        supervised: Supervised,
        recorder: Recorder,
    ) -> str | None:
        """Carry one run out and commit it. Returns why it does not count, or None."""
        run_id = await self._journal.insert(
            RunRecord(
                session_id=self._session_id,
                launch_id=launch_id,
                block=cell.block,
                candidate=cell.candidate,
                slot=cell.slot,
                workload=workload.name,
                kind="warmup" if planned.kind == "warmup" else "measured",
                repeat=planned.repeat,
                seed=planned.seed,
                state="running",
                started_at=utc_now(),
            )
        )
        recorder.begin_run(run_id)
        try:
            await recorder.take()
            outcome = await self._controls.or_cut(
                _unless_dead(self._ask_bench(spec, workload, planned.seed), supervised)
            )
        except BenchFailed as error:
            recorder.end_run()
            await self._finish(run_id, "failed", reason=str(error))
            return str(error)
        except BaseException as error:
            recorder.end_run()
            await self._finish(run_id, "abandoned", reason=_why(error))
            raise
        try:
            await recorder.take()
        finally:  # whatever becomes of the last sample, the result is kept
            reason = await self._commit(run_id, workload, outcome, recorder.end_run())
        return reason

    async def _commit(
        self, run_id: int, workload: Workload, outcome: BenchOutcome, samples: list[SampleRecord]
    ) -> str | None:
        metrics = run_metrics(outcome, samples)
        reason = rejection(workload, outcome, metrics)
        await self._finish(
            run_id,
            "done" if reason is None else "rejected",
            reason=reason,
            metrics=metrics,
            raw={"result": outcome.result, "wall_s": outcome.wall_s, "via": outcome.via},
            started_at=outcome.started_at,
            finished_at=outcome.finished_at,
        )
        return reason

    async def _ask_bench(self, spec: ServerSpec, workload: Workload, seed: int) -> BenchOutcome:
        base_url = f"http://{spec.host}:{spec.port}"
        version = self._installation.version
        argv = bench_argv(workload, spec.model, spec.served_name, base_url, seed, version)
        load_s = workload.requests / workload.request_rate if workload.request_rate else 0.0
        bench = await self._bench()
        return await bench.run(BenchRequest(argv=argv, timeout_s=RUN_WITHIN_S + load_s))

    async def _insert_server(self, spec: ServerSpec, candidate: Candidate, cell: Cell) -> int:
        return await self._journal.insert(
            ServerRecord(
                name=f"{self._plan.name} · {candidate.label}",
                state="starting",
                model=spec.model,
                served_name=spec.served_name,
                host=spec.host,
                port=spec.port,
                command=[],
                env=redact_env(spec.env),
                log_path="",
                marker="",
                session_id=self._session_id,
                vllm_version=self._installation.version,
                started_at=utc_now(),
                raw={"spec": spec_json(spec), "cell": asdict(cell)},
            )
        )

    async def _end(self, launch_id: int, state: str, **fields: Any) -> None:
        await self._journal.update(LaunchRecord, launch_id, state=state, finished_at=utc_now(), **fields)

    async def _finish(self, run_id: int, state: str, **fields: Any) -> None:
        await self._journal.update(RunRecord, run_id, **{"state": state, "finished_at": utc_now(), **fields})

    def _where(self, cell: Cell, planned: PlannedRun) -> str:
        run = f"{planned.workload} {planned.kind} {planned.repeat + 1}"
        return f"block {cell.block + 1}, candidate {cell.candidate}, {run}"


def _why(error: BaseException) -> str:
    """What cut a launch or run short, on one line."""
    if isinstance(error, Interrupted):
        return f"cut short by {error.what}"
    return clean(f"{type(error).__name__}: {error}" if not isinstance(error, EngineError) else str(error), 500)


async def _unless_dead(bench: Any, supervised: Supervised) -> BenchOutcome:
    """The benchmark's outcome, or LaunchFailed as soon as the server ends under it."""
    run: asyncio.Task[BenchOutcome] = asyncio.ensure_future(bench)
    death = asyncio.ensure_future(supervised.watch(LOOK_EVERY_S))
    try:
        await asyncio.wait({run, death}, return_when=asyncio.FIRST_COMPLETED)
        if death.done() and not run.done():
            death.result()
        return await run
    finally:
        for task in (run, death):
            task.cancel()
        await asyncio.gather(run, death, return_exceptions=True)
