"""A session as one would be: noise of 1 %, candidates that are better, worse and alike, and one that never starts."""

import random
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from store.records import LaunchRecord, RunRecord, SessionRecord
from tests.tuning.examples import at, launch, plan, random_workload, session
from tuning.judgement.deciding import KEY, deciding_json, deciding_of
from tuning.judgement.judging import judge
from tuning.judgement.leaving import JUDGED
from tuning.plans.grid import candidates
from tuning.records import Budget, Cell, Decide, Plan, SessionResult
from tuning.results import session_result
from tuning.verdict.design import baseline_launches

# Effects on throughput of the candidates 1 to 5, and on latency.
TRUTH = {0: (0.0, 0.0), 1: (0.06, -0.3), 2: (-0.30, 0.9), 3: (0.0, 0.0), 4: (0.01, 0.05), 5: (0.0, 0.0)}
NEVER = 5


@dataclass(frozen=True)
class Measured:
    session: SessionRecord
    launches: list[LaunchRecord]
    runs: list[RunRecord]
    result: SessionResult


def big_plan(**changes: Any) -> Plan:
    usual: dict[str, Any] = {
        "name": "awq knobs",
        "model": "org/qwen3-14b-awq",
        "workloads": (random_workload(max_concurrency=64), random_workload("long", request_rate=8.0)),
        "server": {"max-model-len": 4096},
        "grid": {"max-num-seqs": (32, 64, 256, 512, 1024)},
        "decide": Decide(
            metric={"chat": "total_tok_per_s", "long": "p99_ttft_ms"},
            blocks=4,
            limits=("chat.p99_ttft_ms <= 720", "error_rate == 0"),
        ),
        "budget": Budget(gpu_price_per_hour=2.5),
    }
    return plan(**{**usual, **changes})


@cache
def measured() -> Measured:
    """The one of `big_plan`, played once for all tests."""
    return played(big_plan())


def played(of: Plan, blocks: int = 4, noise: float = 0.01, **changes: Any) -> Measured:
    """As a sweep makes it: who is decided after a block is launched no more. One launch of candidate 3 reads 15 % less,
    and one run of candidate 1 is rejected twice."""
    draw = random.Random(5)
    points = candidates(of)[0]
    why = "KV cache too small: 0.5 GiB short"
    launches: list[LaunchRecord] = []
    runs: list[RunRecord] = []
    drawn: list[list[Cell]] = []
    out = {each.index: f"did not start: {why}" for each in points if each.index == NEVER}
    for attempt in (1, 2) if out else ():
        gone = {"state": "failed", "failure": why, "failure_class": "kv_cache_too_small", "attempt": attempt}
        launches.append(launch(0, NEVER, number=attempt, start=100.0 * attempt, position=9, **gone))
    for block in range(blocks):
        playing = [each.index for each in points if each.index and each.index not in out]
        if not playing:
            break
        cells = [(index, 0) for index in playing] + [(0, slot) for slot in range(baseline_launches(len(playing)))]
        draw.shuffle(cells)
        drawn.append([Cell(block, at, index, slot) for at, (index, slot) in enumerate(cells)])
        for cell in drawn[-1]:
            number = len(launches) + 1
            one = launch(block, cell.candidate, number=number, start=100.0 * number)
            launches.append(replace(one, position=cell.position, slot=cell.slot))
            odd = -0.15 if (block, cell.candidate) == (1, 3) else 0.0
            runs += _runs(launches[-1], of, 1 + draw.gauss(0, noise) + 0.003 * block + odd, draw, len(runs))
        raw = {
            KEY: deciding_json(deciding_of(of, points)),
            "out": {str(index): said for index, said in out.items()},
            "blocks": [[asdict(cell) for cell in each] for each in drawn],
        }
        record = session(of, points, state="running", raw=raw)
        for index, said in judge(record, of, launches, runs).leaves.items():
            out.setdefault(index, f"{JUDGED} after block {block + 1}: {said}")
    raw["out"] = {str(index): said for index, said in out.items()}
    environment = {"vllm": "0.33.0", "model": of.model, "gpus": [{"index": 0, "name": "NVIDIA H200", "mem_gib": 140.4}]}
    usual = {"state": "done", "environment": environment, "finished_at": at(3000), "raw": raw}
    record = session(of, points, **{**usual, **changes})
    runs += _rejected(runs)
    return Measured(record, launches, runs, session_result(record, launches, runs, at(3000)))


def _rejected(runs: list[RunRecord]) -> list[RunRecord]:
    """Two tries of one run, with evidence."""
    reason = "the load generator was saturated (97 % of a core); lower the rate or the concurrency"
    numbers = {"client_cpu_perc": 97.0, "threshold_perc": 95.0}
    evidence = [{"check": "client", "rejects": True, "reason": reason, "numbers": numbers}]
    one = next(run for run in runs if run.candidate == 1)
    return [
        replace(one, id=len(runs) + 1 + again, state="rejected", reason=reason, raw={"evidence": evidence})
        for again in range(2)
    ]


def _runs(of: LaunchRecord, planned: Plan, level: float, draw: random.Random, made: int) -> list[RunRecord]:
    runs: list[RunRecord] = []
    fast, slow = TRUTH.get(of.candidate, (0.0, 0.0))
    for workload in planned.workloads:
        for repeat in range(2):
            each = level * (1 + draw.gauss(0, 0.005))
            runs.append(
                RunRecord(
                    session_id=14,
                    launch_id=of.id or 0,
                    block=of.block,
                    candidate=of.candidate,
                    slot=of.slot,
                    workload=workload.name,
                    kind="measured",
                    repeat=repeat,
                    seed=1,
                    state="done",
                    started_at=of.started_at,
                    finished_at=of.finished_at,
                    metrics={
                        "total_tok_per_s": 27000 * (1 + fast) * each,
                        "output_tok_per_s": 5400 * (1 + fast) * each,
                        "requests_per_s": 42 * (1 + fast) * each,
                        "error_rate": 0.0,
                        "mean_ttft_ms": 460 * (1 + slow) / each,
                        "p99_ttft_ms": 640 * (1 + slow) / each * (1 + draw.gauss(0, 0.02)),
                        "mean_tpot_ms": 8.1 / each,
                        "p99_itl_ms": 46 / each * (1 + draw.gauss(0, 0.1)),
                        "energy_j_per_token": 0.15 / (1 + fast) / each,
                        "requests_completed": 40.0,
                    },
                    id=made + len(runs) + 1,
                )
            )
    return runs
