"""A small finished session in a database, for tests of what shows one."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from store.database import open_writer
from store.records import EventRecord, LaunchRecord, RunRecord, SessionRecord
from tuning.records import RUN_METRICS, Decide, Plan, Workload

AT = "2026-11-30T10:00:{:02d}.000Z"


def plan() -> Plan:
    workloads = tuple(Workload(name=n, dataset="random", requests=8, warmup=1, repeats=2) for n in ("chat", "long"))
    return Plan("small", "org/model", workloads, grid={"max-num-seqs": (4,)}, decide=Decide(blocks=2))


def metrics(speed: float) -> dict[str, float | None]:
    known = {
        "total_tok_per_s": speed,
        "mean_ttft_ms": 100.0,
        "p99_ttft_ms": 250.0,
        "mean_itl_ms": 9.5,
        "error_rate": 0.0,
    }
    return {name: known.get(name) for name in RUN_METRICS}


def record(data_dir: Path, state: Any = "done", **session: Any) -> int:
    """Write the session: baseline and one candidate, two workloads, two blocks; its id."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with open_writer(data_dir / "llmtune.db") as writer:
        session_id = writer.insert(
            SessionRecord(
                name="small",
                state=state,
                plan_toml="",
                plan=asdict(plan()),
                candidates=[
                    {"index": 0, "label": "default", "settings": {}},
                    {"index": 1, "label": "seqs 4\x1b[31m", "settings": {"max-num-seqs": 4}},
                ],
                seed=1,
                created_at=AT.format(0),
                started_at=AT.format(0),
                finished_at=AT.format(59),
                **session,
            )
        )
        second = 1
        writer.insert(EventRecord(AT.format(second), "info", "block 1 of 2", session_id=session_id))
        for block in range(2):
            for candidate in range(2):
                launch_id = writer.insert(
                    LaunchRecord(
                        session_id,
                        block,
                        candidate,
                        candidate,
                        0,
                        1,
                        "done",
                        started_at=AT.format(second),
                        finished_at=AT.format(second),
                    )
                )
                for workload in ("chat", "long"):
                    for kind, repeat in (("warmup", 0), ("measured", 0), ("measured", 1)):
                        second += 1
                        run = RunRecord(
                            session_id, launch_id, block, candidate, 0, workload, kind, repeat, second, "done",
                            started_at=AT.format(second), finished_at=AT.format(second),
                            metrics=metrics(1000.0 + 100 * candidate + block + repeat),
                        )  # fmt: skip
                        writer.insert(run)
    return session_id
