"""One cell of a sweep: a fresh launch of one candidate, its runs, and the end of its server."""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.bench.client import Bench
from engine.gpu_holders import visible_gpus
from engine.gpus.gpu import GpuReader
from engine.gpus.visible_gpus import gpus_used
from engine.hand_servers import server_log
from engine.keeper.journal import Journal
from engine.keeper.port_lease import leased_port
from engine.keeper.secrets import redacted_spec
from engine.launch.readiness import api_key
from engine.launch.signed_adapters import NO_ADAPTERS, SignedAdapters
from engine.records import Installation, LaunchFailed, ServerSpec
from engine.samples.recorder import Recorder, gpu_used
from engine.supervise import Supervised
from engine.text import redact_env
from store.clock import utc_now
from store.records import LaunchRecord, ServerRecord
from tuning.plans.foregone import smaller_that_starts
from tuning.records import Candidate, Cell, Plan, PlannedRun
from tuning.sweeping.block_runs import BlockRuns
from tuning.sweeping.controls import Controls
from tuning.sweeping.measuring import Measuring, why

HOST = "127.0.0.1"
READY_WITHIN_S = 3600.0


def candidate_spec(plan: Plan, candidate: Candidate, host: str, port: int) -> ServerSpec:
    """The baseline's flags with the candidate's put over them. Neither holds host or port: a plan may not name them."""
    flags = {**plan.server, **candidate.settings}
    return ServerSpec(
        model=plan.model, host=host, port=port, flags=flags, served_name=plan.served_name, env=dict(plan.server_env)
    )


class Launching:
    """Makes launches for one session. The bench process and the GPU reader outlive the single launch.

    `gate` is awaited before each run: it holds while paused and raises Interrupted when the sweep is to end. `past` is
    what the session has measured so far. `adapters` are held against their signatures before each launch: a sweep takes
    hours, and a folder may be overwritten meanwhile.
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
        past: BlockRuns | None = None,
        adapters: SignedAdapters = NO_ADAPTERS,
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
        self._past = past
        self._adapters = adapters
        self._environ = {**os.environ, **plan.server_env}
        self._workloads = {workload.name: workload for workload in plan.workloads}

    async def launch(self, cell: Cell, candidate: Candidate, attempt: int, runs: Sequence[PlannedRun]) -> None:
        """Start the candidate's server, make `runs` in their order, stop the server.

        Raises SignatureBroken before anything is launched, LaunchFailed (recorded), Interrupted and whatever else went
        wrong (the launch is recorded as abandoned).
        """
        with leased_port(HOST) as port:
            spec = candidate_spec(self._plan, candidate, HOST, port)
            await asyncio.to_thread(self._adapters.require_unchanged, spec.flags)
            await self._launch(cell, candidate, spec, attempt, runs)

    async def _launch(
        self, cell: Cell, candidate: Candidate, spec: ServerSpec, attempt: int, runs: Sequence[PlannedRun]
    ) -> None:
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
            await self._end(
                launch_id,
                "failed",
                failure=str(error),
                failure_class=error.failure_class,
                raw=self._diagnosis(candidate, error),
            )
            raise
        except BaseException as error:
            await self._end(launch_id, "abandoned", failure=why(error))
            raise
        await self._end(launch_id, "done")

    def _diagnosis(self, candidate: Candidate, error: LaunchFailed) -> dict[str, Any]:
        """For the launch's `raw`: the numbers of the failure, and as `offer` the settings that would start instead."""
        offer = smaller_that_starts(error.failure_class, error.numbers, candidate.settings, self._plan.server)
        return {name: value for name, value in (("numbers", error.numbers), ("offer", offer)) if value}

    async def _serve(
        self, cell: Cell, spec: ServerSpec, server_id: int, launch_id: int, runs: Sequence[PlannedRun]
    ) -> None:
        # The marker stands in the row before the process is there, so that it is found whenever we die.
        log_path, marker = server_log(self._data_dir, server_id), uuid.uuid4().hex
        await self._journal.update(ServerRecord, server_id, marker=marker, log_path=str(log_path))
        supervised = await Supervised.start(
            self._journal, server_id, self._installation, spec, log_path, marker,
            visible_gpus(self._gpu, self._environ),
        )  # fmt: skip
        try:
            async with Recorder(
                self._journal, server_id, supervised.server.base_url, self._gpu, self._environ,
                api_key(spec, os.environ), uses=gpus_used(spec.flags, spec.extra_args),
            ) as recorder:  # fmt: skip
                await self._controls.or_cut(supervised.wait_ready(READY_WITHIN_S))
                await self._journal.update(LaunchRecord, launch_id, state="ready", ready_at=utc_now())
                measuring = Measuring(
                    session_id=self._session_id,
                    launch_id=launch_id,
                    cell=cell,
                    spec=spec,
                    vllm_version=self._installation.version,
                    journal=self._journal,
                    controls=self._controls,
                    gate=self._gate,
                    bench=self._bench,
                    supervised=supervised,
                    recorder=recorder,
                    past=self._past,
                )
                for planned in runs:
                    await measuring.measure(self._workloads[planned.workload], planned)
        finally:
            await supervised.stop(read_gpu_used=gpu_used(self._gpu, self._environ))

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
                raw={"spec": redacted_spec(spec), "cell": asdict(cell)},
            )
        )

    async def _end(self, launch_id: int, state: str, **fields: Any) -> None:
        await self._journal.update(LaunchRecord, launch_id, state=state, finished_at=utc_now(), **fields)
