"""A store as it stands after months: some forty sweeps of ten thousand runs, and a server's week of samples.

Deterministic but for `now`, the moment it is looked at. Samples lie as store.thinning leaves them by then.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from store.clock import format_utc
from store.database import open_writer
from store.records import EventRecord, LaunchRecord, RunRecord, SampleRecord, ServerRecord, SessionRecord
from store.rows import Record, shape, to_row
from store.thinning import STEPS
from store.writer import Writer
from tuning.judgement.deciding import KEY, deciding_json, deciding_of
from tuning.records import Budget, Candidate, Decide, Plan, Workload

RUN_S = 30
LAUNCH_S = 90  # until it is ready
WEEK = timedelta(days=7)
METRICS = {
    "total_tok_per_s": 27245.0, "output_tok_per_s": 9082.0, "requests_per_s": 35.2, "error_rate": 0.0,
    "mean_ttft_ms": 180.0, "median_ttft_ms": 171.0, "p90_ttft_ms": 402.0, "p99_ttft_ms": 930.0, "mean_itl_ms": 9.8,
    "median_itl_ms": 9.1, "p90_itl_ms": 14.0, "p99_itl_ms": 31.0, "mean_tpot_ms": 9.9, "median_tpot_ms": 9.2,
    "p90_tpot_ms": 14.2, "p99_tpot_ms": 29.0, "mean_e2el_ms": 1190.0, "median_e2el_ms": 1160.0, "p90_e2el_ms": 1420.0,
    "p99_e2el_ms": 2070.0, "preemptions": 17.0, "prefix_hit_perc": 32.1, "kv_peak_perc": 87.0, "running_peak": 256.0,
    "waiting_peak": 31.0, "gpu_mem_peak_gib": 130.7, "gpu_power_mean_w": 612.0, "energy_j_per_token": 0.067,
    "client_cpu_perc": 60.0, "client_lag_p99_ms": 2.0, "duration_s": 28.4, "requests_completed": 1000.0,
    "requests_failed": 0.0, "input_tokens": 512000.0, "output_tokens": 256000.0,
}  # fmt: skip
LIMITED = "KV-bound: KV above 95 % for 21 s of 28, 17 preemptions, 31 waiting for capacity"


def build(
    path: Path,
    now: datetime,
    *,
    sessions: int = 42,
    candidates: int = 9,
    blocks: int = 4,
    week: bool = True,
    thinned: bool = True,
) -> int:
    """Write the store; how many runs it has: each session makes six on every launch, of `candidates` and the default,
    in each block. All are done but the last, which runs; beside it a server started by hand has run for a week.

    `thinned` False leaves every second of the week in it, as a program without thinning would have.
    """
    gap = timedelta(days=40) / sessions
    begins = [now - timedelta(days=40) + gap * at for at in range(sessions)]
    with open_writer(path) as writer, writer.transaction():
        begins[-1] = now - _length(candidates, blocks) * 0.6
        for at, begin in enumerate(begins):
            _session(writer, f"sweep-{at + 1}", begin, now, candidates, blocks, running=at + 1 == sessions)
        if week:
            _hand_started(writer, now, thinned)
        count: int = writer._connection.execute("SELECT COUNT(*) FROM run").fetchone()[0]
    return count


SENTENCE = "No candidate is shown to beat the default: all break a limit."


def _length(candidates: int, blocks: int) -> timedelta:
    return timedelta(seconds=(candidates + 1) * blocks * (LAUNCH_S + 6 * RUN_S))


def plan(name: str, candidates: int, blocks: int) -> Plan:
    chat = Workload("chat", "sharegpt", 1000, path="sharegpt.json", warmup=1, repeats=2)
    prefix = Workload("prefix", "prefix_repetition", 1000, warmup=1, repeats=2)
    return Plan(
        name=name, model="models/qwen3-14b-awq", served_name="qwen3-14b-awq", workloads=(chat, prefix),
        server={"max-model-len": 4096, "gpu-memory-utilization": 0.92},
        explicit_candidates=tuple(_settings(at) for at in range(1, candidates + 1)),
        decide=Decide(blocks=blocks, limits=("chat.p99_ttft_ms <= 500",)),
        budget=Budget(hours=6, gpu_price_per_hour=0.44),
    )  # fmt: skip


def _settings(at: int) -> dict[str, Any]:
    return {
        "max-num-batched-tokens": 2048 << at % 4,
        "gpu-memory-utilization": round(0.9 + 0.02 * (at // 4 % 4), 2),
        "max-num-seqs": 32 << at // 16,
    }


def _session(
    writer: Writer, name: str, begin: datetime, now: datetime, candidates: int, blocks: int, *, running: bool
) -> None:
    settings = [{}, *(_settings(at) for at in range(1, candidates + 1))]
    its_plan = plan(name, candidates, blocks)
    points = [Candidate(at, f"{at}", each) for at, each in enumerate(settings)]
    end = begin + _length(candidates, blocks)
    session_id = writer.insert(
        SessionRecord(
            name=name, state="running" if running else "done", plan_toml="# a plan\n" * 40,
            plan=asdict(its_plan),
            candidates=[
                {"index": at, "label": " · ".join(map(str, each.values())) or "default", "settings": each}
                for at, each in enumerate(settings)
            ],
            seed=7, created_at=format_utc(begin), started_at=format_utc(begin),
            finished_at=None if running else format_utc(end),
            environment={"vllm": "0.33.0", "driver": "580.95.05", "gpu": {"name": "NVIDIA H200", "gib": 139.8}},
            raw={KEY: deciding_json(deciding_of(its_plan, points)), "sentence": SENTENCE},
        )
    )  # fmt: skip
    moment = begin
    writer.insert(EventRecord(format_utc(moment), "info", "block 1 begins", session_id=session_id))
    made: list[tuple[RunRecord, datetime, int]] = []
    for block in range(blocks):
        for candidate in range(candidates + 1):
            if running and moment > now:
                break
            moment = _launch(writer, session_id, block, candidate, moment, now, made)
    first = writer._connection.execute("SELECT coalesce(max(id), 0) + 1 FROM run").fetchone()[0]
    insert_many(writer, RunRecord, [to_row(run) for run, _, _ in made])
    old = next(step for step in reversed(STEPS) if step.of_runs and (step.after < now - begin or step is STEPS[3]))
    every = old.every_s if old.after < now - begin else 1
    insert_many(
        writer,
        SampleRecord,
        [
            sample_row(at + timedelta(seconds=second), server_id, first + number, at.timestamp() + second, every)
            for number, (_, at, server_id) in enumerate(made)
            for second in (0, *range(every, RUN_S, every))
        ],
    )


def _launch(
    writer: Writer, session_id: int, block: int, candidate: int, begin: datetime, now: datetime,
    made: list[tuple[RunRecord, datetime, int]],
) -> datetime:  # fmt: skip
    """A launch with its server, six runs and three events; when it ended."""
    ready = begin + timedelta(seconds=LAUNCH_S)
    end = ready + timedelta(seconds=6 * RUN_S)
    up = end > now
    server_id = writer.insert(a_server(f"c{candidate}", ready, None if up else end, session_id))
    launch_id = writer.insert(
        LaunchRecord(
            session_id, block, candidate, candidate, 0, 0, "ready" if up else "done", server_id=server_id,
            started_at=format_utc(begin), ready_at=format_utc(ready), finished_at=None if up else format_utc(end),
        )
    )  # fmt: skip
    for text in ("starting", "ready after 85 s", "stopped"):
        writer.insert(EventRecord(format_utc(begin), "info", f"candidate {candidate}: {text}", session_id, server_id))
    cells = [(w, kind, n) for w in ("chat", "prefix") for kind, n in (("warmup", 0), ("measured", 0), ("measured", 1))]
    for number, (workload, kind, repeat) in enumerate(cells):
        at = ready + timedelta(seconds=RUN_S * number)
        if at > now:
            break
        ended = at + timedelta(seconds=RUN_S)
        factor = 1 + 0.01 * candidate + 0.004 * math.sin(block + 3 * repeat + candidate)
        run = RunRecord(
            session_id, launch_id, block, candidate, 0, workload, kind, repeat, 11,  # type: ignore[arg-type]
            "done" if ended < now else "running", started_at=format_utc(at),
            finished_at=format_utc(ended) if ended < now else None,
            metrics={metric: value * factor for metric, value in METRICS.items()} if ended < now else {},
            raw={"result": {f"figure_{at}": 123.456789 * at for at in range(80)}, "wall_s": 29.1, "via": "process"},
            limited_by=LIMITED if ended < now else None,
        )  # fmt: skip
        made.append((run, at, server_id))
    return end


def a_server(name: str, ready: datetime, stopped: datetime | None, session_id: int | None) -> ServerRecord:
    flags = {"max-model-len": 4096, "gpu-memory-utilization": 0.92, "max-num-seqs": 256}
    return ServerRecord(
        name=name, state="ready" if stopped is None else "stopped", model="models/qwen3-14b-awq", host="127.0.0.1",
        port=8000, command=["vllm", "serve", "models/qwen3-14b-awq", *(f"--{k}={v}" for k, v in flags.items())],
        env={"HF_HOME": "hf"}, log_path="", marker=f"m-{name}-{ready.timestamp():.0f}", session_id=session_id,
        served_name="qwen3-14b-awq", vllm_version="0.33.0", pid=2**22 - 1, start_ticks=1,
        descendants=[[2**22 - at, 2] for at in range(12)], started_at=format_utc(ready - timedelta(seconds=LAUNCH_S)),
        ready_at=format_utc(ready), stopped_at=format_utc(stopped) if stopped else None,
        facts={"kv_cache_tokens": 188688, "kv_cache_gib": 28.8, "weights_gib": 9.44, "load_s": 93.0, "compile_s": 31.0},
        raw={"spec": {"model": "models/qwen3-14b-awq", "flags": flags}, "installation": {"command": ["vllm"]}},
    )  # fmt: skip


def _hand_started(writer: Writer, now: datetime, thinned: bool) -> None:
    begin = now - WEEK
    server_id = writer.insert(a_server("by-hand", begin, None, None))
    for text in ("starting", "ready"):
        writer.insert(EventRecord(format_utc(begin), "info", text, server_id=server_id))
    insert_many(
        writer,
        SampleRecord,
        (sample_row(at, server_id, None, at.timestamp(), every) for at, every in _week(now, thinned)),
    )


def _week(now: datetime, thinned: bool) -> Iterator[tuple[datetime, int]]:
    """(moment, the seconds it stands for) of each sample that is there after a week."""
    steps = sorted((step for step in STEPS if not step.of_runs and thinned), key=lambda step: -step.after)
    at = now - WEEK
    while at < now:
        every = next((step.every_s for step in steps if at < now - step.after), 1)
        yield at, every
        at += timedelta(seconds=every)


_RAW = (
    '{"requests_finished":{"stop":%d,"length":%d,"abort":0,"error":0,"repetition":0},"waiting_by_reason":{"capacity":%d,'
    '"deferred":0},"prompt_by_source":{"local_compute":%d,"local_cache_hit":%d,"external_kv_transfer":0},"counters":'
    '{"prompt_tokens_cached":%d,"external_prefix_queries":0,"external_prefix_hits":0,"mm_queries":0,"mm_hits":0},'
    '"histograms":{%s},"process_start":1796029150.41,"gpu_memory_utilization":0.92,"kv_cache_tokens":188688,'
    '"sleep_state":"awake","model_name":"qwen3-14b-awq","gpus":[{"index":0,"uuid":"GPU-8d0fc2b8-7a1c-4b0e-9d4f-'
    'a3a6ac2b8f11","name":"NVIDIA H200","mem_total_gib":139.80127,"mem_used_gib":%.6f,"mem_reserved_gib":0.6,'
    '"mem_free_gib":8.5,"util_perc":%d,"mem_util_perc":61,"power_w":%.3f,"power_limit_w":700,"energy_j":%.3f,'
    '"sm_clock_mhz":1980,"mem_clock_mhz":3201,"temp_c":41,"throttle_reasons":[],"pcie_rx_mib_per_s":12.3,'
    '"pcie_tx_mib_per_s":4.5,"ecc_errors":0,"processes":[{"pid":4711,"used_gib":129.9,"name":"VLLM::EngineCore"}]}]%s}'
)
_HISTOGRAMS = (
    "ttft",
    "itl",
    "tpot",
    "e2el",
    "queue",
    "prefill",
    "decode",
    "prompt_length",
    "output_length",
    "step_tokens",
)
_CORNERS = ((0.05, 0.2), (0.1, 0.5), (0.25, 0.8), (0.5, 0.9), (1, 0.98), (2.5, 1), (None, 1))


@cache
def _histograms(total: int) -> str:
    """The histograms of a row: those of a thousand seconds are alike, since making them is what takes longest here."""
    return ",".join(
        f'"{name}":{{"sum":{total * 0.171:.6f},"count":{total},"corners":['
        + ",".join(f"[{json.dumps(le)},{int(total * share)}]" for le, share in _CORNERS)
        + "]}"
        for name in _HISTOGRAMS
    )


def sample_row(at: datetime, server_id: int, run_id: int | None, second: float, every: int) -> dict[str, Any]:
    """A row of `sample`; all figures follow from `second`, so that counters grow and gauges wave."""
    wave = 0.5 + 0.5 * math.sin(second / 37)
    running, waiting, kv = int(64 + 190 * wave), int(40 * wave), 100 * wave
    total = int(second) % 10**7
    histograms = _histograms(total - total % 1000)
    told = (
        f',"thinned":{{"samples":{every},"silent":0,"peak":{{"kv_perc":{kv:.4f},"running":{running},'
        f'"waiting":{waiting},"gpu_mem_used_gib":130.7}}}}'
        if every > 1
        else ""
    )
    memory, power, energy = 130.1 + wave, 500 + 110 * wave, 550.0 * total
    raw = _RAW % (
        total, total * 3, waiting, total * 256, total * 90, total * 90, histograms, memory, int(60 + 38 * wave), power,
        energy, told,
    )  # fmt: skip
    return {
        "at": format_utc(at), "server_id": server_id, "run_id": run_id, "running": running, "waiting": waiting,
        "kv_perc": kv, "preemptions": total // 40, "prompt_tokens": total * 256, "generation_tokens": total * 128,
        "prefix_queries": total * 256, "prefix_hits": total * 90, "gpu_mem_used_gib": memory,
        "gpu_util_perc": 60 + 38 * wave, "gpu_power_w": power, "gpu_energy_j": energy, "raw": raw, "id": None,
    }  # fmt: skip


def insert_many(writer: Writer, record_type: type[Record], rows: Any) -> None:
    """All rows by one prepared statement: going through records would take minutes."""
    known = shape(record_type)
    names, marks = ", ".join(known.columns), ", ".join(f":{column}" for column in known.columns)
    writer._connection.executemany(f"INSERT INTO {known.table} ({names}) VALUES ({marks})", rows)
