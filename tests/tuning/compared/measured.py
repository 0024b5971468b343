"""Sessions that were measured on a machine whose truth is known."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from store.records import LaunchRecord, RunRecord, SessionRecord
from tests.tuning.examples import at, plan, session
from tuning.compared.comparing import side_of
from tuning.compared.records import Side
from tuning.records import Decide, Plan

LEVEL = 27_000.0  # total tok/s of the default
NOW = at(90_000)


def a_plan(blocks: int = 4, **changes: Any) -> Plan:
    return plan(**{"decide": Decide(blocks=blocks), **changes})


def a_session(
    of: Plan | None = None,
    effects: Mapping[int, float] | None = None,
    *,
    id: int = 14,
    seed: int = 1,
    level: float = LEVEL,
    launch_sd: float = 0.01,
    run_sd: float = 0.005,
    baseline_launches: int = 1,
    begins: float = 0.0,
    environment: Mapping[str, Any] | None = None,
    **changes: Any,
) -> tuple[SessionRecord, list[LaunchRecord], list[RunRecord]]:
    """A finished session of `of`, all of its blocks whole. `effects` are true ratios − 1, by candidate."""
    of, true = of or a_plan(), effects or {}
    noise = random.Random(seed)
    known = {"vllm": "0.33.0", "driver": "580.1", "model_hash": "a" * 64, "gpus": []}
    usual = {
        "id": id,
        "state": "done",
        "created_at": at(begins),
        "started_at": at(begins),
        "finished_at": at(begins + 3600),
        "environment": known if environment is None else dict(environment),
    }
    record = session(of, **{**usual, **changes})
    launches: list[LaunchRecord] = []
    runs: list[RunRecord] = []
    for block in range(of.decide.blocks):
        cells = [(0, slot) for slot in range(baseline_launches)]
        cells += [(each["index"], 0) for each in record.candidates if each["index"]]
        for position, (candidate, slot) in enumerate(cells):
            number = len(launches) + 1
            launches.append(
                LaunchRecord(
                    id, block, position, candidate, slot, 1, "done",
                    started_at=at(begins), ready_at=at(begins + 1), finished_at=at(begins + 9), id=number,
                )
            )  # fmt: skip
            for workload in of.workloads:
                shift = math.log(level) + math.log1p(true.get(candidate, 0.0)) + noise.gauss(0, launch_sd)
                for repeat in range(workload.repeats):
                    speed = math.exp(shift + noise.gauss(0, run_sd))
                    runs.append(
                        RunRecord(
                            id, number, block, candidate, slot, workload.name, "measured", repeat, 1, "done",
                            started_at=at(begins), finished_at=at(begins + 1),
                            metrics={"total_tok_per_s": speed, "mean_ttft_ms": 1e6 / speed, "error_rate": 0.0},
                        )
                    )  # fmt: skip
    return record, launches, runs


def a_side(*args: Any, **named: Any) -> Side:
    return side_of(*a_session(*args, **named), NOW)


def only(side: Side, workloads: Sequence[str]) -> Side:
    """The side without the runs of other workloads."""
    return replace(side, runs=tuple(run for run in side.runs if run.workload in workloads))
