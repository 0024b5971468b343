"""A store with one session and a launcher that writes rows instead of starting servers: what a sweep does in it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from engine.keeper.journal import Journal
from engine.records import LaunchFailed
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.reader import Reader
from store.records import LaunchRecord, RunRecord, RunState, SessionRecord
from store.writer import Writer
from tuning.judged import Deciding, Judgement
from tuning.judgement.deciding import deciding_json, deciding_of
from tuning.judgement.judging import judge
from tuning.plans.grid import candidates
from tuning.plans.plan_json import candidates_from_json, plan_json
from tuning.records import Candidate, Cell, Decide, Plan, PlannedRun, Workload
from tuning.sweeping.controls import Controls, Interrupted
from tuning.sweeping.sweep import Judge, Sweep

PLAN = Plan(
    name="rules",
    model="m",
    workloads=(
        Workload("chat", "random", requests=4, repeats=2),
        Workload("prefix", "prefix_repetition", requests=4, repeats=1),
    ),
    explicit_candidates=({"max-num-seqs": 4}, {"max-num-seqs": 8}),
    decide=Decide(blocks=2),
)
Metrics = Mapping[str, float | None]


@dataclass
class World:
    """`launched`: block, candidate, attempt; `made`: block, candidate, run. Nobody leaves unless a test says who, or
    takes `judged` for the judge."""

    writer: Writer
    reader: Reader
    session_id: int
    plan: Plan = PLAN
    launched: list[tuple[int, int, int]] = field(default_factory=list)
    made: list[tuple[int, int, PlannedRun]] = field(default_factory=list)
    before_launch: Callable[[Cell], None] = lambda cell: None
    state_of_run: Callable[[Cell, PlannedRun], RunState] = lambda cell, run: "done"
    metrics_of: Callable[[Cell, PlannedRun], Metrics] = lambda cell, run: {}
    judge: Judge = lambda launches, runs: Judgement("", Deciding({}, {}), {})

    def judged(self, launches: list[LaunchRecord], runs: list[RunRecord]) -> Judgement:
        """The real judge, on the rows as a keeper gives them."""
        return judge(self.session(), self.plan, launches, runs)

    def judgement(self) -> Judgement:
        return self.judged(self.reader.launches(self.session_id), self.reader.runs(self.session_id))

    def session(self) -> SessionRecord:
        return self.reader.session(self.session_id)

    def events(self) -> list[str]:
        return [event.text for event in self.reader.events(session_id=self.session_id, limit=1000)]

    def sweep(self, controls: Controls) -> Sweep:
        async def gate() -> None:
            await controls.while_paused()

        session = self.session()
        return Sweep(
            session,
            self.plan,
            candidates_from_json(session.candidates),
            Journal(self.writer, session_id=self.session_id),
            controls,
            self._launch,
            gate,
            lambda: (self.reader.launches(self.session_id), self.reader.runs(self.session_id)),
            self.judge,
        )

    async def _launch(self, cell: Cell, candidate: Candidate, attempt: int, runs: list[PlannedRun]) -> None:
        assert candidate.index == cell.candidate
        self.launched.append((cell.block, cell.candidate, attempt))
        launch = LaunchRecord(
            self.session_id,
            cell.block,
            cell.position,
            cell.candidate,
            cell.slot,
            attempt,
            "ready",
            started_at=utc_now(),
        )
        launch_id = self.writer.insert(launch)
        try:
            self.before_launch(cell)
            for run in runs:
                self._run(cell, launch_id, run)
        except LaunchFailed as error:
            self.writer.update(
                LaunchRecord, launch_id, state="failed", failure=str(error), failure_class=error.failure_class
            )
            raise
        except Interrupted:
            self.writer.update(LaunchRecord, launch_id, state="abandoned")
            raise
        self.writer.update(LaunchRecord, launch_id, state="done")

    def _run(self, cell: Cell, launch_id: int, run: PlannedRun) -> None:
        state = self.state_of_run(cell, run)
        self.made.append((cell.block, cell.candidate, run))
        record = RunRecord(
            self.session_id,
            launch_id,
            cell.block,
            cell.candidate,
            cell.slot,
            run.workload,
            "warmup" if run.kind == "warmup" else "measured",
            run.repeat,
            run.seed,
            state,
            metrics=dict(self.metrics_of(cell, run)),
        )
        self.writer.insert(record)
        if state == "rejected":
            self.writer.insert(replace(record, seed=run.seed + 1))


@contextmanager
def world_of(folder: Path, plan: Plan = PLAN, seed: int = 7, fixed: bool = True) -> Iterator[World]:
    """A session of `plan` that waits. `fixed`: what decides is kept with it, as sessions of this version do."""
    path = folder / "llmtune.db"
    points, _ = candidates(plan)
    raw = {"deciding": deciding_json(deciding_of(plan, points))} if fixed else {}
    with open_writer(path) as writer:
        session = SessionRecord(
            plan.name, "waiting", "", plan_json(plan), [asdict(each) for each in points], seed, utc_now(), raw=raw
        )
        session_id = writer.insert(session)
        with open_reader(path) as reader:
            yield World(writer, reader, session_id, plan)
