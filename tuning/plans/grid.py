"""From a plan to its candidates: the product of the grid, less what need not or cannot be launched."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from engine.launch.adapter_flags import FLAG
from tuning.plans.condition import read_condition
from tuning.plans.lora_modules import module_names
from tuning.records import Candidate, Plan, Skipped

BASELINE_LABEL = "default"
AGAIN_LABEL = "default again"
_SHORT = {
    "max-num-batched-tokens": "batched",
    "gpu-memory-utilization": "util",
    "max-num-seqs": "seqs",
    "enable-lora": "lora",
    FLAG: "adapters",
    "max-lora-rank": "rank",
}


def candidates(plan: Plan) -> tuple[list[Candidate], list[Skipped]]:
    """The candidates in the order of the grid, index 0 the baseline, and the points left out with the reason for each.

    Left out are points equal to the baseline's own flags or to an earlier point, points that a `[[skip]]` names, and
    points with fewer batched tokens than sequences, which vLLM refuses (SchedulerConfig). An A/A session's only
    candidate is the default again.
    """
    found = [Candidate(0, BASELINE_LABEL, {})]
    if plan.calibrate:
        return [*found, Candidate(1, AGAIN_LABEL, {})], []
    skipped: list[Skipped] = []
    seen: dict[str, str] = {_key(plan.server): "the same as the baseline"}
    rules = [read_condition(when) for when in plan.skip]
    for settings in _points(plan):
        merged = {**plan.server, **settings}
        if same := seen.get(_key(merged)):
            reason: str | None = same
        elif rule := next((rule for rule in rules if rule.holds(merged)), None):
            reason = f"left out by the plan: {rule.text}"
        else:
            reason = refused(merged)
        if reason is not None:
            skipped.append(Skipped(settings, reason))
            continue
        candidate = Candidate(len(found), candidate_label(settings, tuple(plan.grid)), settings)
        seen[_key(merged)] = f"the same as candidate {candidate.index}"
        found.append(candidate)
    return found, skipped


def refused(flags: Mapping[str, Any]) -> str | None:
    """Why vLLM would refuse these flags whatever the model and the GPU, or None."""
    tokens, sequences = flags.get("max-num-batched-tokens"), flags.get("max-num-seqs")
    if isinstance(tokens, int) and isinstance(sequences, int) and tokens < sequences:
        return f"max-num-batched-tokens {tokens} is below max-num-seqs {sequences}: vLLM refuses it"
    return None


def candidate_label(settings: Mapping[str, Any], dimensions: Sequence[str] = ()) -> str:
    """`2048 · 0.90 · 64` where the settings are exactly the table's several dimensions, else `seqs 64 · util 0.90`."""
    if len(dimensions) > 1 and set(settings) == set(dimensions):
        return " · ".join(shown_setting(name, settings[name]) for name in dimensions)
    return " · ".join(f"{_SHORT.get(name, name)} {shown_setting(name, value)}" for name, value in settings.items())


def shown_setting(name: str, value: Any) -> str:
    """A value for a table: utilizations with two decimals at least, bare flags as on and off, adapters by name."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if name == FLAG:
        return ", ".join(module_names(value)) or str(value)
    if name == "gpu-memory-utilization" and isinstance(value, int | float):
        return f"{value:.2f}" if round(value, 2) == value else f"{value:g}"
    return str(value)


def _points(plan: Plan) -> Iterator[dict[str, Any]]:
    if plan.explicit_candidates:
        yield from (dict(settings) for settings in plan.explicit_candidates)
    elif plan.grid:
        for values in product(*plan.grid.values()):
            yield dict(zip(plan.grid, values, strict=True))


def _key(flags: Mapping[str, Any]) -> str:
    """Equal for flags that give the same server: 1 and 1.0 are one value, 1 and true are two."""
    return repr(sorted((name, _same(value)) for name, value in flags.items()))


def _same(value: Any) -> str:
    return repr(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)
