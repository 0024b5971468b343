"""A measured run of a sweep on an H200 (vLLM 0.25.1, eager, 300 requests of 512 + 128 tokens, 64 at once), as its
keeper recorded it: what the checks must let pass, and what the tests spoil in one way at a time."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.processes.port_seen import PortSeen
from engine.records import BenchOutcome
from store.records import SampleRecord
from tests.tuning.examples import random_workload
from tuning.checks.finding import Finding, RunFacts

FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures"
RECORDED = json.loads((FIXTURES / "h200-vllm-0.25.1/samples/chat-run.json").read_text())
ENGINE_PID = 1529  # as NVML listed it
CHAT = random_workload(
    requests=300, max_concurrency=64, shape={"input_len": 512, "output_len": 128, "range_ratio": 0.0, "prefix_len": 0}
)
BEGAN = 1796038642.0  # a second and a half before what /metrics says: `vllm` itself, before it started the engine
SERVER = PortSeen("2026-11-30T11:39:02.400Z", 8000, (1401, ENGINE_PID), ours=(1401,), began=BEGAN)

Gpu = dict[str, Any]
Change = Callable[[int, Gpu], None]


def samples() -> list[SampleRecord]:
    """Fresh ones, that a test may spoil."""
    return [SampleRecord(**json.loads(json.dumps(each))) for each in RECORDED["samples"]]


def recorded(**changes: Any) -> RunFacts:
    """All that is known of the run."""
    outcome = BenchOutcome(RECORDED["result"], 15.0, RECORDED["samples"][0]["at"], RECORDED["samples"][-1]["at"])
    usual = RunFacts(
        CHAT, outcome, RECORDED["metrics"], RECORDED["seed"], samples=samples(), uses=1, before=SERVER, after=SERVER
    )
    return replace(usual, **changes)


def with_gpus(change: Change, base: RunFacts | None = None) -> RunFacts:
    """The run with its GPU in each sample changed by `change(position of the sample, the GPU's object)`."""
    facts = base or recorded()
    for at, sample in enumerate(facts.samples):
        for gpu in sample.raw["gpus"]:
            change(at, gpu)
    return facts


def held(gib: float = 130.16) -> Change:
    """Our engine as NVML lists it where it tells how much each process holds."""

    def change(at: int, gpu: Gpu) -> None:
        gpu["processes"] = [{"pid": ENGINE_PID, "used_gib": gib, "name": "VLLM::EngineCore"}]

    return change


def changed(of: Sequence[SampleRecord], at: int, **fields: Any) -> list[SampleRecord]:
    """The samples from `at` on with other fields; `raw` is put over what they have."""
    raw = fields.pop("raw", {})
    return [
        replace(sample, **fields, raw={**sample.raw, **raw}) if place >= at else sample
        for place, sample in enumerate(of)
    ]


def one(finding: Finding | None) -> Finding:
    """A finding that is there, on one line."""
    assert finding is not None
    assert "\n" not in finding.reason
    assert finding.numbers
    json.dumps(finding.to_json(), allow_nan=False)
    return finding
