"""All 36 runs of a sweep on an H200 (docs/results/h200), as they were recorded: no check may take one for spoilt."""

import lzma
from collections import Counter
from pathlib import Path

from engine.records import BenchOutcome
from store.database import open_reader
from tests.tuning.checks.recorded import FIXTURES
from tuning.checks.acceptance import findings, rejects
from tuning.checks.finding import RunFacts
from tuning.plans.plan_json import plan_from_json
from tuning.run_metrics import run_metrics


def test_every_run_of_a_real_sweep_counts(tmp_path: Path) -> None:
    path = tmp_path / "llmtune.db"
    path.write_bytes(lzma.decompress((FIXTURES / "h200-vllm-0.25.1/sweep.db.xz").read_bytes()))
    found: Counter[str] = Counter()
    with open_reader(path) as reader:
        session = reader.find_session("last")
        assert session.id is not None
        workloads = {workload.name: workload for workload in plan_from_json(session.plan).workloads}
        runs = reader.runs(session.id, with_raw=True)
        for run in runs:
            outcome = BenchOutcome(run.raw["result"], 0.0, str(run.started_at), str(run.finished_at))
            samples = reader.samples(run_id=run.id)
            metrics = {**run.metrics, **run_metrics(outcome, samples)} | {
                name: run.metrics[name] for name in ("client_cpu_perc", "client_lag_p99_ms")
            }
            facts = RunFacts(
                workloads[run.workload], outcome, metrics, run.seed, run.kind == "measured", samples, uses=1
            )
            assert rejects(findings(facts)) is None
            found.update(finding.check for finding in findings(facts))
    assert len(runs) == 36
    assert found == {"clocks": 34}  # the power cap, in all but two
