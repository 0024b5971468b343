"""The runs of one launch: each is watched, judged and committed before the next."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.bench.client import Bench
from engine.keeper.journal import Journal
from engine.knobs import Knobs, knobs_of_flags
from engine.race import unless
from engine.readiness import base_url
from engine.recorder import Recorder
from engine.records import BenchFailed, BenchOutcome, BenchRequest, EngineError, ServerSpec
from engine.supervise import Supervised
from engine.text import clean
from store.clock import utc_now
from store.records import RunRecord, SampleRecord
from tuning.acceptance import rejection
from tuning.controls import Controls, Interrupted
from tuning.limited_by import run_limit
from tuning.records import Cell, PlannedRun, Workload
from tuning.run_metrics import run_metrics
from tuning.seeds import retry_seed
from tuning.workload_args import bench_argv

LOOK_EVERY_S = 0.5
RUN_WITHIN_S = 3600.0  # beyond what the request rate alone takes
# An API server outlives its engine by a moment, in which it answers every request with an error.
DEATH_SHOWS_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Measuring:
    """Carries out the runs of one launch, on a server that is ready.

    `gate` is awaited before each run: it holds while paused and raises Interrupted when the sweep is to end. `bench`
    gives the benchmark process, which outlives the launch.
    """

    session_id: int
    launch_id: int
    cell: Cell
    spec: ServerSpec
    vllm_version: str
    journal: Journal
    controls: Controls
    gate: Callable[[], Awaitable[None]]
    bench: Callable[[], Awaitable[Bench]]
    supervised: Supervised
    recorder: Recorder

    async def measure(self, workload: Workload, planned: PlannedRun) -> None:
        """One run, and once again with another seed where a measured one had to be rejected.

        Raises LaunchFailed when the server ends or stands still under it, Interrupted.
        """
        await self.gate()
        reason = await self._run(workload, planned)
        if reason is not None and planned.kind == "measured":
            await self._say(planned, f"rejected: {reason}; once more")
            await unless(asyncio.sleep(DEATH_SHOWS_WITHIN_S), self.supervised.watch(LOOK_EVERY_S))
            await self.gate()
            reason = await self._run(workload, replace(planned, seed=retry_seed(planned.seed)))
        if reason is not None:
            await self._say(planned, f"rejected: {reason}")

    async def _run(self, workload: Workload, planned: PlannedRun) -> str | None:
        """Carry one run out and commit it. Returns why it does not count, or None."""
        run_id = await self.journal.insert(
            RunRecord(
                session_id=self.session_id,
                launch_id=self.launch_id,
                block=self.cell.block,
                candidate=self.cell.candidate,
                slot=self.cell.slot,
                workload=workload.name,
                kind="warmup" if planned.kind == "warmup" else "measured",
                repeat=planned.repeat,
                seed=planned.seed,
                state="running",
                started_at=utc_now(),
            )
        )
        self.recorder.begin_run(run_id)
        try:
            await self.recorder.take()
            outcome = await self.controls.or_cut(
                unless(
                    self._ask_bench(workload, planned.seed),
                    self.supervised.watch(LOOK_EVERY_S),
                    self.supervised.watch_progress(self.recorder),
                )
            )
        except BenchFailed as error:
            self.recorder.end_run()
            await self._finish(run_id, "failed", reason=str(error))
            return str(error)
        except BaseException as error:
            self.recorder.end_run()
            await self._finish(run_id, "abandoned", reason=why(error))
            raise
        try:
            await self.recorder.take()
        finally:  # whatever becomes of the last sample, the result is kept
            reason = await self._commit(run_id, workload, outcome, self.recorder.end_run())
        return reason

    async def _commit(
        self, run_id: int, workload: Workload, outcome: BenchOutcome, samples: list[SampleRecord]
    ) -> str | None:
        metrics = run_metrics(outcome, samples)
        reason = rejection(workload, outcome, metrics)
        limit = run_limit(outcome, samples, self._knobs(samples))
        raw = {
            "result": outcome.result,
            "wall_s": outcome.wall_s,
            "via": outcome.via,
            "load_started_at": outcome.load_started_at,
        }
        await self._finish(
            run_id,
            "done" if reason is None else "rejected",
            reason=reason,
            metrics=metrics,
            limited_by=limit.text if limit else None,
            raw=raw | ({"limit": asdict(limit)} if limit else {}),
            started_at=outcome.started_at,
            finished_at=outcome.finished_at,
        )
        return reason

    def _knobs(self, samples: list[SampleRecord]) -> Knobs:
        answered = next((sample for sample in reversed(samples) if sample.running is not None), None)
        facts = asdict(self.supervised.server.facts())
        return knobs_of_flags(self.spec.flags, answered, version=self.vllm_version, facts=facts)

    async def _ask_bench(self, workload: Workload, seed: int) -> BenchOutcome:
        spec = self.spec
        argv = bench_argv(workload, spec.model, spec.served_name, base_url(spec), seed, self.vllm_version)
        load_s = workload.requests / workload.request_rate if workload.request_rate else 0.0
        bench = await self.bench()
        return await bench.run(BenchRequest(argv=argv, timeout_s=RUN_WITHIN_S + load_s))

    async def _finish(self, run_id: int, state: str, **fields: Any) -> None:
        await self.journal.update(RunRecord, run_id, **{"state": state, "finished_at": utc_now(), **fields})

    async def _say(self, planned: PlannedRun, what: str) -> None:
        run = f"{planned.workload} {planned.kind} {planned.repeat + 1}"
        await self.journal.event(
            f"block {self.cell.block + 1}, candidate {self.cell.candidate}, {run} {what}", "warning"
        )


def why(error: BaseException) -> str:
    """What cut a launch or run short, on one line."""
    if isinstance(error, Interrupted):
        return f"cut short by {error.what}"
    return clean(f"{type(error).__name__}: {error}" if not isinstance(error, EngineError) else str(error), 500)
