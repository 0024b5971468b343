"""The runs of one launch: each is watched, judged and committed before the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.bench.client import Bench
from engine.gpus.visible_gpus import gpus_used
from engine.keeper.journal import Journal
from engine.launch.readiness import base_url
from engine.limiting.knobs import Knobs, knobs_of_flags
from engine.processes.port_seen import PortSeen, port_seen
from engine.race import unless
from engine.records import BenchFailed, BenchOutcome, BenchRequest, EngineError, ServerSpec
from engine.samples.recorder import Recorder
from engine.supervise import Supervised
from engine.text import clean
from store.clock import utc_now
from store.records import RunRecord, SampleRecord
from tuning.checks.acceptance import findings, rejects
from tuning.checks.finding import KEY, RunFacts
from tuning.checks.requests import answers_of
from tuning.limited_by import run_limit
from tuning.plans.lora_modules import addressed
from tuning.plans.workload_args import bench_argv, forces_eos
from tuning.records import Cell, PlannedRun, Workload
from tuning.run_metrics import run_metrics
from tuning.scheduling.schedule import BASELINE
from tuning.scheduling.seeds import retry_seed
from tuning.sweeping.afterwards import reject_far
from tuning.sweeping.block_runs import BlockRuns
from tuning.sweeping.controls import Controls, Interrupted

LOOK_EVERY_S = 0.5
RUN_WITHIN_S = 3600.0  # beyond what the request rate alone takes
# An API server outlives its engine by a moment, in which it answers every request with an error.
DEATH_SHOWS_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Measuring:
    """Carries out the runs of one launch, on a server that is ready.

    `gate` is awaited before each run: it holds while paused and raises Interrupted when the sweep is to end. `bench`
    gives the benchmark process, which outlives the launch. `past` is what the block has measured so far; without it no
    run is held against the baseline's.
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
    past: BlockRuns | None = None

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
        before = self._port()
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
            facts = self._facts(workload, planned, outcome, self.recorder.end_run(), before)
            reason = await self._commit(run_id, facts)
        if reason is None:
            await self._hold_earlier_against(run_id, facts)
        return reason

    def _facts(
        self,
        workload: Workload,
        planned: PlannedRun,
        outcome: BenchOutcome,
        samples: list[SampleRecord],
        before: PortSeen,
    ) -> RunFacts:
        measured, block = planned.kind == "measured", self.cell.block
        compared = measured and self.past is not None and not forces_eos(workload)
        return RunFacts(
            workload,
            outcome,
            run_metrics(outcome, samples),
            planned.seed,
            measured,
            samples,
            uses=gpus_used(self.spec.flags, self.spec.extra_args),
            before=before,
            after=self._port(),
            baseline=self.past.of_baseline(block, workload.name, self.launch_id) if compared and self.past else (),
        )

    async def _hold_earlier_against(self, run_id: int, facts: RunFacts) -> None:
        """A run of the baseline judges the answers of those that were made before it."""
        answers = answers_of(run_id, facts.seed, facts.metrics)
        if self.cell.candidate != BASELINE or not facts.measured or self.past is None or answers is None:
            return
        await reject_far(self.journal, self.past, self.launch_id, self.cell.block, facts.workload, answers)

    async def _commit(self, run_id: int, facts: RunFacts) -> str | None:
        outcome, samples = facts.outcome, facts.samples
        found = findings(facts)
        reason = rejects(found)
        limit = run_limit(outcome, samples, self._knobs(samples))
        raw = {
            "result": outcome.result,
            "wall_s": outcome.wall_s,
            "via": outcome.via,
            "load_started_at": outcome.load_started_at,
        }
        raw |= {"limit": asdict(limit)} if limit else {}
        raw |= {KEY: [each.to_json() for each in found]} if found else {}
        await self._finish(
            run_id,
            "done" if reason is None else "rejected",
            reason=reason,
            metrics=dict(facts.metrics),
            limited_by=limit.text if limit else None,
            raw=raw,
            started_at=outcome.started_at,
            finished_at=outcome.finished_at,
        )
        return reason

    def _port(self) -> PortSeen:
        server = self.supervised.server
        return port_seen(self.spec.host, self.spec.port, server.identity, server.descendants())

    def _knobs(self, samples: Sequence[SampleRecord]) -> Knobs:
        answered = next((sample for sample in reversed(samples) if sample.running is not None), None)
        facts = asdict(self.supervised.server.facts())
        return knobs_of_flags(self.spec.flags, answered, version=self.vllm_version, facts=facts)

    async def _ask_bench(self, workload: Workload, seed: int) -> BenchOutcome:
        spec = self.spec
        argv = bench_argv(
            workload, spec.model, spec.served_name, base_url(spec), seed, self.vllm_version,
            addressed(workload, spec.flags),
        )  # fmt: skip
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
