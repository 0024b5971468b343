"""A plausible session for the tests of Tune and Sessions: two workloads, a default and three candidates, one of which
does not start, a rejected run, names meant to harm a terminal; finished, or in the middle of its second block."""

import random
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from store.database import open_writer
from store.records import EventRecord, LaunchRecord, RunRecord, SessionRecord
from store.writer import Writer
from tuning.records import Budget, Decide, Plan, Workload

START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
HOSTILE = "awq [/bold] [core.py:58] [red]\x1b[31mknobs\u202e"
SETTINGS: list[dict[str, Any]] = [
    {},
    {"max-num-batched-tokens": 2048, "gpu-memory-utilization": 0.9},
    {"max-num-batched-tokens": 8192, "gpu-memory-utilization": 0.9},
    {"max-num-batched-tokens": 16384, "gpu-memory-utilization": 0.98},
]
EFFECTS = (1.0, 1.02, 0.71)
WHY = "out of memory while capturing CUDA graphs, 0.5 GiB short: lower gpu-memory-utilization to 0.96 [/x]"

SEQUENCE_BOUND = (
    "Sequence-bound: at max-num-seqs for all 30 s, about 40 waiting, KV 61 %. "
    "Raise max-num-seqs (now 256); the other two cannot help."
)
KV_BOUND = (
    "KV-bound: KV above 95 % for all 30 s, 17 preemptions, about 16 waiting. "
    "Raise gpu-memory-utilization (now 0.9); max-num-seqs cannot help."
)


def plan(name: str = HOSTILE) -> Plan:
    """The plan that the session carries out."""
    chat = Workload("chat", "random", 200, max_concurrency=10, repeats=2, shape={"input_len": 128, "output_len": 64})
    prefix = Workload("pre[/x]fix", "prefix_repetition", 200, repeats=2)
    return Plan(
        name=name,
        model="org/Model-[/bold]-7B",
        served_name="m",
        workloads=(chat, prefix),
        server={"max-model-len": 4096},
        explicit_candidates=tuple(SETTINGS[1:]),
        decide=Decide(blocks=2, limits=("chat.p99_ttft_ms <= 500",)),
        budget=Budget(hours=6, gpu_price_per_hour=0.44),
    )


def stamp(seconds: float) -> str:
    """A time that many seconds into the session."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record_session(
    writer: Writer, *, finished: bool = True, name: str = HOSTILE, state: Any = None, **fields: Any
) -> int:
    """Write the session; its id. Unfinished, it stops in the second block with a run going on."""
    candidates = [
        {"index": at, "label": "default" if at == 0 else " · ".join(map(str, each.values())), "settings": each}
        for at, each in enumerate(SETTINGS)
    ]
    session_id = writer.insert(
        SessionRecord(
            name=name,
            state=state or ("done" if finished else "running"),
            plan_toml="",
            plan=asdict(plan(name)),
            candidates=candidates,
            seed=7,
            created_at=stamp(0),
            started_at=stamp(1),
            finished_at=stamp(4000) if finished else None,
            environment={"vllm_version": "0.33.0", "gpu": {"name": "H200 [/x]", "driver": None}},
            raw={
                "out": {"3": f"did not start: {WHY}"},
                "left_out": [{"settings": {"max-num-seqs": 4096}, "reason": "max-num-batched-tokens is below it"}],
            },
            **fields,
        )
    )
    writer.insert(EventRecord(stamp(2), "info", "block 1 of 2 begins", session_id=session_id))
    writer.insert(EventRecord(stamp(9), "warning", f"16384 did not serve: {WHY}\x1b[2J", session_id=session_id))
    _launches(writer, session_id, finished)
    return session_id


def _launches(writer: Writer, session_id: int, finished: bool) -> None:
    noise, second, position = random.Random(5), 10.0, 0
    for block in range(2):
        for candidate, slot in ((0, 0), (1, 0), (3, 0), (2, 0), (0, 1)):
            if candidate == 3 and block:
                continue
            last = not finished and (block, candidate) == (1, 2)
            failed = candidate == 3
            launch_id = writer.insert(
                LaunchRecord(
                    session_id, block, position, candidate, slot, 1,
                    "failed" if failed else "ready" if last else "done",
                    started_at=stamp(second), ready_at=None if failed else stamp(second + 60),
                    finished_at=None if last else stamp(second + 300),
                    failure=WHY if failed else None, failure_class="oom_graph" if failed else None,
                )
            )  # fmt: skip
            position += 1
            if not failed:
                _runs(writer, session_id, launch_id, (block, candidate, slot), second + 60, last, noise.gauss)
            if last:
                return
            second += 320


def _runs(
    writer: Writer,
    session_id: int,
    launch_id: int,
    cell: tuple[int, int, int],
    second: float,
    last: bool,
    gauss: Callable[[float, float], float],
) -> None:
    block, candidate, slot = cell
    for workload, speed in (("chat", 27245.0), ("pre[/x]fix", 41000.0)):
        made = [("warmup", 0), ("measured", 0), ("measured", 1)]
        # What is rejected is made once more.
        twice = (candidate, block, workload) == (2, 0, "chat")
        for at, (kind, repeat) in enumerate([*made, ("measured", 1)] if twice else made):
            going_on = last and workload == "chat" and kind == "measured" and repeat == 1
            rejected = twice and at == 2
            factor = EFFECTS[candidate] * gauss(1.0, 0.004)
            writer.insert(
                RunRecord(
                    session_id, launch_id, block, candidate, slot, workload,
                    kind, repeat, 100 + repeat,  # type: ignore[arg-type]
                    "running" if going_on else "rejected" if rejected else "done",
                    reason="3 of 200 requests failed" if rejected else None,
                    started_at=stamp(second), finished_at=None if going_on else stamp(second + 30),
                    metrics={} if going_on else {
                        "total_tok_per_s": speed * factor, "output_tok_per_s": speed * factor / 3,
                        "mean_ttft_ms": 180 / factor, "p99_ttft_ms": 1012 / factor, "mean_itl_ms": 9.8 / factor,
                        "p99_itl_ms": 31 / factor, "kv_peak_perc": 71.0, "preemptions": 0.0, "error_rate": 0.0,
                    },
                    limited_by=None if going_on else KV_BOUND if candidate == 1 and repeat == 0 else SEQUENCE_BOUND,
                )
            )  # fmt: skip
            if going_on:
                return
            second += 35


def session_in(data_dir: Path, **fields: Any) -> int:
    """Open the database of a data directory, write the session, close it."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with open_writer(data_dir / "llmtune.db") as writer:
        return record_session(writer, **fields)
