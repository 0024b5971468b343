"""Plans, sessions and runs for the tests of this room."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.records import BenchOutcome
from store.clock import format_utc
from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.plans.grid import candidates
from tuning.plans.plan_json import plan_json
from tuning.records import Candidate, Decide, Plan, Workload

BEGAN = datetime(2026, 11, 30, 10, tzinfo=UTC)


def at(seconds: float) -> str:
    return format_utc(BEGAN + timedelta(seconds=seconds))


def random_workload(name: str = "chat", **changes: Any) -> Workload:
    shape = {"input_len": 64, "output_len": 32, "range_ratio": 0.0, "prefix_len": 0}
    return replace(Workload(name=name, dataset="random", requests=40, repeats=2, shape=shape), **changes)


def prefix_workload(name: str = "prefix", **changes: Any) -> Workload:
    shape = {"prefix_len": 256, "suffix_len": 64, "num_prefixes": 3, "output_len": 16}
    workload = Workload(name=name, dataset="prefix_repetition", requests=40, repeats=2, ignore_eos=True, shape=shape)
    return replace(workload, **changes)


def sharegpt_workload(name: str = "talk", **changes: Any) -> Workload:
    return replace(Workload(name=name, dataset="sharegpt", requests=40, path="/data/talk.json"), **changes)


def plan(**changes: Any) -> Plan:
    """Two candidates (64 and 256 sequences) against 16, on one workload, in two blocks."""
    usual = Plan(
        name="knobs",
        model="org/model",
        workloads=(random_workload(),),
        server={"max-num-seqs": 16},
        grid={"max-num-seqs": (64, 256)},
        decide=Decide(blocks=2),
    )
    return replace(usual, **changes)


def session(of: Plan, points: list[Candidate] | None = None, **changes: Any) -> SessionRecord:
    points = candidates(of)[0] if points is None else points
    usual = SessionRecord(
        name=of.name,
        state="running",
        plan_toml="",
        plan=plan_json(of),
        candidates=[{"index": each.index, "label": each.label, "settings": each.settings} for each in points],
        seed=7,
        created_at=at(0),
        started_at=at(0),
        id=14,
    )
    return replace(usual, **changes)


def launch(block: int, candidate: int, *, number: int = 0, start: float = 0, **changes: Any) -> LaunchRecord:
    """A launch that was done: ready after 40 s, over after 100 s."""
    usual = LaunchRecord(
        session_id=14,
        block=block,
        position=0,
        candidate=candidate,
        slot=0,
        attempt=1,
        state="done",
        started_at=at(start),
        ready_at=at(start + 40),
        finished_at=at(start + 100),
        id=number,
    )
    return replace(usual, **changes)


def run(block: int, candidate: int, value: float | None = None, *, repeat: int = 0, **changes: Any) -> RunRecord:
    """An accepted measured run of 10 s with `value` as its total tok/s."""
    usual = RunRecord(
        session_id=14,
        launch_id=1,
        block=block,
        candidate=candidate,
        slot=0,
        workload="chat",
        kind="measured",
        repeat=repeat,
        seed=1,
        state="done",
        started_at=at(50),
        finished_at=at(60),
        metrics={} if value is None else {"total_tok_per_s": value},
    )
    return replace(usual, **changes)


def outcome(result: dict[str, Any], **changes: Any) -> BenchOutcome:
    return replace(BenchOutcome(result, wall_s=12.0, started_at=at(0), finished_at=at(12)), **changes)
