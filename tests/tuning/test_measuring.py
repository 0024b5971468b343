"""The runs of a launch on a stand-in for vLLM: what the checks find of them stands in their rows and in the events, and
what is rejected is made once more."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.bench.client import Bench, open_bench
from engine.gpus.gpu import GpuReader
from engine.keeper import port_lease
from engine.keeper.journal import Journal, unsaid
from engine.launch.environment import child_environ
from engine.launch.installation import find_vllm
from store.database import open_reader, open_writer
from store.reader import Reader
from store.records import RunRecord, SessionRecord
from store.writer import Writer
from tests.engine.fake_nvml import FakeNvml
from tests.engine.server_stand_in import own_port
from tests.faults.stand_in_vllm import make_installation, make_model
from tests.tuning.examples import at, plan, random_workload, sharegpt_workload
from tuning.checks.finding import Finding, evidence_of
from tuning.plans.workload_args import bench_argv
from tuning.records import Candidate, Cell, PlannedRun, Workload
from tuning.scheduling.seeds import retry_seed
from tuning.sweeping.block_runs import BlockRuns
from tuning.sweeping.controls import Controls
from tuning.sweeping.launching import Launching

HOT, CAPPED = 0x40, 0x4  # NVML's bits of hardware thermal slowdown and of the power cap
CHAT = random_workload(requests=4, shape={"input_len": 8, "output_len": 4, "range_ratio": 0.0, "prefix_len": 0})
RUN = PlannedRun("chat", "measured", 0, 77)


class Session:
    """A session that makes launches of the stand-in."""

    def __init__(self, folder: Path, writer: Writer, reader: Reader, bench: Bench, nvml: FakeNvml) -> None:
        self.folder, self.writer, self.reader, self.bench, self.nvml = folder, writer, reader, bench, nvml
        self.id = writer.insert(SessionRecord("s", "running", "", {}, [], 1, at(0)))

    async def launch(self, candidate: int, *runs: PlannedRun, workload: Workload = CHAT) -> None:
        """One launch in block 0, with these runs."""

        async def gate() -> None: ...

        async def bench() -> Bench:
            return self.bench

        made = plan(model=str(self.folder / "model"), workloads=(workload,), server={}, grid={})
        installation = find_vllm(str(self.folder / "vllm" / "bin" / "vllm"), os.environ)
        journal = Journal(self.writer, session_id=self.id, log=unsaid)
        launching = Launching(
            self.id, made, installation, journal, Controls(), bench, GpuReader(self.nvml), self.folder, gate,
            BlockRuns(self.reader, self.id),
        )  # fmt: skip
        await launching.launch(Cell(0, 0, candidate, 0), Candidate(candidate, "c", {}), 1, list(runs))

    def runs(self) -> list[RunRecord]:
        return self.reader.runs(self.id, with_raw=True)

    def events(self) -> list[str]:
        return [event.text for event in self.reader.events(session_id=self.id)]


@pytest.fixture
async def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    _, environ = make_installation(tmp_path / "vllm")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LLMTUNE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(port_lease, "free_port", lambda host, start: own_port())
    monkeypatch.setattr("tuning.sweeping.measuring.DEATH_SHOWS_WITHIN_S", 0.05)
    make_model(tmp_path / "model")
    installation = find_vllm(str(tmp_path / "vllm" / "bin" / "vllm"), os.environ)
    bench = await open_bench(installation, child_environ(installation.bin_dir, os.environ), tmp_path / "bench.log")
    try:
        with open_writer(tmp_path / "db") as writer, open_reader(tmp_path / "db") as reader:
            yield Session(tmp_path, writer, reader, bench, FakeNvml())
    finally:
        await bench.close()


def named(run: RunRecord, check: str) -> Finding:
    return next(finding for finding in evidence_of(run) if finding.check == check)


async def test_a_throttled_run_is_rejected_with_its_evidence_and_made_once_more(session: Session) -> None:
    session.nvml.throttle = HOT | CAPPED
    await session.launch(1, RUN)
    first, second = session.runs()
    assert (first.state, second.state) == ("rejected", "rejected")
    assert (first.seed, second.seed) == (77, retry_seed(77))
    for run in (first, second):
        found = named(run, "throttled")
        assert run.reason == found.reason
        assert found.numbers["reasons"] == ["hardware thermal"]
        assert found.numbers["at"]
        assert run.raw["result"]["completed"] == 4
        assert run.metrics["total_tok_per_s"]
    assert session.events() == [
        f"block 1, candidate 1, chat measured 1 rejected: {first.reason}; once more",
        f"block 1, candidate 1, chat measured 1 rejected: {second.reason}",
    ]


async def test_a_run_that_counts_keeps_notes(session: Session) -> None:
    session.nvml.throttle = CAPPED
    await session.launch(1, RUN)
    (run,) = session.runs()
    assert (run.state, run.reason) == ("done", None)
    assert named(run, "clocks").numbers["reasons"] == ["power cap"]
    assert "pid 7" in named(run, "shared GPU").reason
    assert session.events() == []


async def test_earlier_answers_are_held_against_the_baselines(session: Session) -> None:
    """Candidate 1 runs before the default, 2 after it; both answer with half as many tokens."""
    talk = sharegpt_workload("chat", requests=4000)
    few, usual = {"output_tokens": 4000 * 50.0}, {"requests_completed": 4000.0, "output_tokens": 4000 * 100.0}
    await session.launch(1, RUN)
    (early,) = session.runs()
    assert early.id is not None
    session.writer.update(RunRecord, early.id, metrics={**usual, **few})
    counted = "tuning.sweeping.measuring.run_metrics"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, lambda outcome, samples: {**usual, "duration_s": 1.0})
        patch.setattr("tuning.sweeping.measuring.bench_argv", lambda workload, *rest: bench_argv(CHAT, *rest))
        await session.launch(0, RUN, workload=talk)
        patch.setattr(counted, lambda outcome, samples: {**usual, **few, "duration_s": 1.0})
        await session.launch(2, RUN, workload=talk)
    states = [(run.candidate, run.state) for run in session.runs()]
    assert states == [(1, "rejected"), (0, "done"), (2, "rejected"), (2, "rejected")]
    assert "rejected afterwards: 50 tokens an answer, -50 %" in session.events()[0]
    assert "once more" in session.events()[1]
