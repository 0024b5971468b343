"""A recorded run as a store holds it: the figures of an H200 whose cache fills up, and what tests change in them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from store.database import open_writer
from store.records import EventRecord, LaunchRecord, RunRecord, SampleRecord, ServerRecord
from tests.tui.tune_session import HOSTILE, record_session, stamp

BOUNDS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
RUN_S, BEFORE_S = 60, 10
BEGIN = 100.0  # seconds into the session at which the load of the run begins


def histogram(count: float) -> dict[str, Any]:
    """Times to first token of `count` requests: half below 80 ms, nine in ten below 320 ms."""
    shares = (0.0, 0.2, 0.5, 0.7, 0.9, 0.95, 1.0, 1.0)
    corners: list[list[float | None]] = [
        [bound, round(share * count)] for bound, share in zip(BOUNDS, shares, strict=True)
    ]
    return {"sum": 0.15 * count, "count": count, "corners": [*corners, [None, count]]}


def sample(second: float, server_id: int | None = 1, **changes: Any) -> SampleRecord:
    """The server `second` s after the load began: 200 users from then on, preemptions after 30 s, held back at 40 s."""
    load = min(max(second, 0.0), float(RUN_S))
    busy = 0 < second < RUN_S
    util, power = (97.0, 640.0) if busy else (0.0, 120.0)
    gpu = {
        "index": 0,
        "name": "NVIDIA H200",
        "mem_total_gib": 140.4,
        "mem_used_gib": 128.5,
        "util_perc": util,
        "power_w": power,
        "power_limit_w": 700.0,
        "sm_clock_mhz": 1410.0 if 40 <= second < 46 else 1980.0,
        "throttle_reasons": ["power cap"] if 40 <= second < 46 else [],
    }
    made = SampleRecord(
        at=stamp(BEGIN + second),
        server_id=server_id,
        running=min(184.0, 10 * load) if busy else 0.0,
        waiting=16.0 if busy and second > 20 else 0.0,
        kv_perc=min(99.0, 3.3 * load) if busy else 0.0,
        preemptions=max(0.0, 2 * (load - 30)),
        prompt_tokens=9000 * load,
        generation_tokens=4500 * load,
        gpu_mem_used_gib=128.5,
        gpu_util_perc=util,
        gpu_power_w=power,
        raw={
            "requests_finished": {"stop": 30 * load, "length": 5 * load},
            "histograms": {"ttft": histogram(36 * load)},
            "gpu_memory_utilization": 0.92,
            "process_start": 1000.0,
            "gpus": [gpu],
        },
    )
    return replace(made, **changes)


def samples(first: int = -BEFORE_S, last: int = RUN_S + 5) -> list[SampleRecord]:
    """One a second."""
    return [sample(float(second)) for second in range(first, last + 1)]


def record_run(
    data_dir: Path, recorded: list[SampleRecord] | None = None, words: str = "", **run: Any
) -> tuple[int, int, int]:
    """Write a session, a server with its samples, a launch on it and one more run; ids of session, server and run.

    `words` stand wherever a person's or a server's text may.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    with open_writer(data_dir / "llmtune.db") as writer:
        session_id = record_session(writer, name=words or HOSTILE)
        server_id = writer.insert(
            ServerRecord(
                words or "demo · default", "stopped", words or "/models/qwen2.5-7b", "127.0.0.1", 8000,
                ["/venv/bin/vllm", "serve", words or "/models/qwen2.5-7b"], {}, "", "0" * 32, session_id=session_id,
                vllm_version="0.25.1", started_at=stamp(BEGIN - 90), ready_at=stamp(BEGIN - 9),
                stopped_at=stamp(BEGIN + RUN_S + 6), exit_code=0, raw={"spec": {"flags": {"max-num-seqs": 256}}},
            )
        )  # fmt: skip
        launch_id = writer.insert(
            LaunchRecord(session_id, 0, 9, 1, 0, 1, "done", server_id=server_id, started_at=stamp(BEGIN - 90))
        )
        fields: dict[str, Any] = {
            "state": "done",
            "started_at": stamp(BEGIN - 4),
            "finished_at": stamp(BEGIN + RUN_S),
            "metrics": {"total_tok_per_s": 13500.0, "p99_ttft_ms": 640.0, "kv_peak_perc": 99.0},
            "raw": {"load_started_at": stamp(BEGIN)},
            "limited_by": "KV-bound: KV above 95 % for 30 s, 60 preemptions. Raise gpu-memory-utilization (now 0.92).",
        }
        workload = words or "chat"
        writer.insert(
            RunRecord(
                session_id, launch_id, 0, 1, 0, workload, "warmup", 0, 1, "done",
                started_at=stamp(BEGIN - 9), finished_at=stamp(BEGIN - 5),
            )
        )  # fmt: skip
        run_id = writer.insert(
            RunRecord(session_id, launch_id, 0, 1, 0, workload, "measured", 1, 42, **{**fields, **run})
        )
        kept = samples() if recorded is None else recorded
        writer.insert_samples([replace(one, server_id=server_id) for one in kept])
        text = words or "preemptions began [/x]"
        writer.insert(EventRecord(stamp(BEGIN + 31), "warning", text, server_id=server_id))
    return session_id, server_id, run_id
