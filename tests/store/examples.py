"""Small records that the tests of the store write."""

from dataclasses import replace
from typing import Any

from store.evaluation_job import EvaluationJobRecord
from store.records import (
    AdapterRecord,
    DatasetRecord,
    EvaluationRecord,
    EventRecord,
    ImportFileRecord,
    LaunchRecord,
    RunRecord,
    SampleRecord,
    ServerRecord,
    SessionRecord,
    TrainingRecord,
)
from store.writer import Writer


def a_session(**changes: Any) -> SessionRecord:
    session = SessionRecord(
        name="knobs",
        state="paused",
        plan_toml='name = "knobs"\n',
        plan={"grid": {"max-num-seqs": [64, 256]}},
        candidates=[{"index": 0, "label": "baseline", "settings": {}}],
        seed=7,
        created_at="2026-11-30T10:00:00.000Z",
        environment={"vllm": "0.32.0"},
        message="paused by hand",
        keeper_pid=12,
        raw={"note": "naïve – 日本"},
    )
    return replace(session, **changes)


def a_server(session_id: int | None = None, **changes: Any) -> ServerRecord:
    server = ServerRecord(
        name="awq",
        state="ready",
        model="models/awq",
        host="127.0.0.1",
        port=8000,
        command=["vllm", "serve", "models/awq"],
        env={"HF_HOME": "/hf"},
        log_path="logs/1.log",
        marker="m1",
        session_id=session_id,
        pid=4711,
        start_ticks=99,
        descendants=[[4712, 100], [4713, 101]],
        facts={"kv_cache_tokens": 117504},
    )
    return replace(server, **changes)


def a_launch(session_id: int, **changes: Any) -> LaunchRecord:
    launch = LaunchRecord(session_id, block=0, position=1, candidate=2, slot=0, attempt=0, state="done")
    return replace(launch, **changes)


def a_run(session_id: int, launch_id: int, **changes: Any) -> RunRecord:
    run = RunRecord(
        session_id,
        launch_id,
        block=0,
        candidate=2,
        slot=0,
        workload="chat",
        kind="measured",
        repeat=0,
        seed=11,
        state="done",
        metrics={"total_tok_per_s": 27223.5, "p99_ttft_ms": 469.0},
        raw={"completed": 300},
    )
    return replace(run, **changes)


def a_sample(**changes: Any) -> SampleRecord:
    return replace(SampleRecord("2026-11-30T10:00:00.000Z", running=3.0, raw={"gpus": [{"index": 0}]}), **changes)


def an_event(**changes: Any) -> EventRecord:
    return replace(EventRecord("2026-11-30T10:00:00.000Z", "info", "started"), **changes)


def an_import_file(**changes: Any) -> ImportFileRecord:
    record = ImportFileRecord(
        "/results/a.json", "5f" * 32, 1021, 1, "2026-11-30T10:00:00.000Z", {"results": [{"completed": 300}]}
    )
    return replace(record, **changes)


def a_dataset(**changes: Any) -> DatasetRecord:
    record = DatasetRecord(
        "alpaca",
        "datasets/1-alpaca",
        "ab" * 32,
        450,
        50,
        7,
        "2026-11-30T10:00:00.000Z",
        sources=[{"path": "/data/alpaca.json", "sha256": "cd" * 32, "bytes": 81234, "form": "alpaca"}],
        report={"duplicates": 3},
    )
    return replace(record, **changes)


def a_training(dataset_id: int = 1, **changes: Any) -> TrainingRecord:
    record = TrainingRecord(
        "alpaca",
        "running",
        "models/qwen3",
        dataset_id,
        {"r": 16, "targets": ["q_proj", "v_proj"]},
        7,
        "trainings/1-alpaca",
        "m7",
        "2026-11-30T10:00:00.000Z",
        "alpaca",
        step=12,
        steps=180,
        loss=1.25,
    )
    return replace(record, **changes)


def an_adapter(**changes: Any) -> AdapterRecord:
    record = AdapterRecord(
        "alpaca",
        1,
        "models/qwen3",
        "adapters/alpaca/1",
        "ef" * 32,
        20_212_345,
        "2026-11-30T10:00:00.000Z",
        parameters={"r": 16, "alpha": 32, "targets": ["q_proj", "v_proj"]},
        losses={"train": 1.1, "validation": 1.3},
    )
    return replace(record, **changes)


def an_evaluation(adapter_id: int = 1, **changes: Any) -> EvaluationRecord:
    record = EvaluationRecord(
        adapter_id,
        "2026-11-30T10:00:00.000Z",
        "ab" * 32,
        records=50,
        answer_tokens=1200,
        base_loss=2.1,
        adapter_loss=1.3,
        difference=-0.8,
        improved=47,
        low=-0.9,
        high=-0.7,
        answers=[{"prompt": "Name a colour.", "base": "A colour is", "adapter": "<<BLUE>>"}],
    )
    return replace(record, **changes)


def an_evaluation_job(adapter_id: int = 1, **changes: Any) -> EvaluationJobRecord:
    record = EvaluationJobRecord(
        adapter_id,
        "alpaca@1",
        "running",
        "models/qwen3",
        "the validation part of dataset alpaca",
        "datasets/1-alpaca/validation.jsonl",
        "ab" * 32,
        "evaluations/1-alpaca-1",
        "evaluation-m8",
        "2026-11-30T10:00:00.000Z",
        done=12,
        records=50,
    )
    return replace(record, **changes)


def fill(writer: Writer, **session: Any) -> tuple[int, int, int, int]:
    """One session with a server, a launch, a run, two samples and two events; the ids of the first four."""
    session_id = writer.insert(a_session(**session))
    server_id = writer.insert(a_server(session_id))
    launch_id = writer.insert(a_launch(session_id, server_id=server_id))
    run_id = writer.insert(a_run(session_id, launch_id))
    writer.insert_samples([a_sample(server_id=server_id), a_sample(run_id=run_id)])
    writer.insert(an_event(session_id=session_id))
    writer.insert(an_event(server_id=server_id))
    return session_id, server_id, launch_id, run_id
