"""What a check is given of a run and what it finds, and how findings are kept with the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.processes.port_seen import PortSeen
from engine.records import BenchOutcome
from engine.text import clean, redact
from store.records import RunRecord, SampleRecord
from tuning.limited_by import load_samples
from tuning.records import Workload

KEY = "evidence"
"""Of RunRecord.raw: a list of findings as JSON."""

TIMES_KEPT = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """`reason` is one line for a person; `numbers` is its evidence as JSON, units in the names: what was measured,
    the threshold, and when. One that does not reject is a note on a run that counts."""

    check: str
    reason: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    rejects: bool = True

    def to_json(self) -> dict[str, Any]:
        numbers = {name: _hidden(value) for name, value in self.numbers.items()}
        return {"check": self.check, "rejects": self.rejects, "reason": redact(self.reason), "numbers": numbers}


@dataclass(frozen=True, slots=True)
class Answers:
    """How much another run of the workload in the same block gave: what answers without a set length are held
    against."""

    run_id: int
    seed: int
    requests: float
    tokens: float


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that is known of one run. `samples` ascend, from just before the benchmark was asked to just after its
    answer. `uses` is how many of the GPUs the server computes on, from the first (None: all). `before` and `after` are
    its port on the edges of the run. `baseline` are answers of the default in this block, as far as it has run."""

    workload: Workload
    outcome: BenchOutcome
    metrics: Mapping[str, float | None]
    seed: int = 0
    measured: bool = True
    samples: Sequence[SampleRecord] = ()
    uses: int | None = None
    before: PortSeen | None = None
    after: PortSeen | None = None
    baseline: Sequence[Answers] = ()

    @property
    def load(self) -> Sequence[SampleRecord]:
        """The samples of the load itself; with none that fell into it, the last before it."""
        found = load_samples(self.outcome, self.samples)
        return found[1:] or found

    @property
    def pids(self) -> frozenset[int]:
        """The server's processes at either edge."""
        return frozenset(pid for seen in (self.before, self.after) if seen is not None for pid in seen.pids)


def moments(samples: Sequence[SampleRecord]) -> list[str]:
    """When these were taken, the first of them where they are many."""
    return [sample.at for sample in samples[:TIMES_KEPT]]


def span(samples: Sequence[SampleRecord]) -> dict[str, Any]:
    """Over which samples something was looked for."""
    return {"samples": len(samples), "from": samples[0].at, "to": samples[-1].at} if samples else {"samples": 0}


def evidence_of(run: RunRecord) -> tuple[Finding, ...]:
    """What was found of a run, read with its `raw`; () for one of an older version, and of one without a finding."""
    kept = run.raw.get(KEY)
    found = [each for each in kept if isinstance(each, Mapping)] if isinstance(kept, list) else []
    return tuple(
        Finding(
            clean(str(each.get("check", "")), 40),
            clean(str(each.get("reason", "")), 400),
            numbers if isinstance(numbers := each.get("numbers"), Mapping) else {},
            bool(each.get("rejects", True)),
        )
        for each in found
    )


def numbers_text(finding: Finding) -> str:
    """The evidence on one line: `throttled_perc 14.3, threshold_perc 2, from …`."""
    return clean(", ".join(f"{name.replace('_', ' ')} {_value(value)}" for name, value in finding.numbers.items()), 600)


def _hidden(value: Any) -> Any:
    if isinstance(value, list):
        return [_hidden(each) for each in value]
    return redact(value) if isinstance(value, str) else value


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(_value(each) for each in value[:6]) + (" …" if len(value) > 6 else "")
    return "–" if value is None else str(value)
