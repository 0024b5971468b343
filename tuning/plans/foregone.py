"""Points of a sweep that need not be launched, since one that failed tells how they would end; and what to offer
instead of one that failed.

Whether a flag makes a failure more or less likely follows from the order of a start: weights, a measured run, the
KV cache in what the utilization leaves, CUDA graphs, the sampler's warm-up.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.failures.smaller import FEWEST_TOKENS, halved, lower_utilization
from tuning.plans.grid import shown_setting
from tuning.plans.plan_check import is_number
from tuning.records import Candidate

UTILIZATION, TOKENS, SEQUENCES, LENGTH, RANK = (
    *("gpu-memory-utilization", "max-num-batched-tokens", "max-num-seqs", "max-model-len", "max-lora-rank"),
)

NOT_TRIED = "not tried"

# "higher": a value as high or higher fails alike; "any": the flag plays no part. All other flags must be the same.
Side = Literal["higher", "lower", "any"]
_ANY_LIMIT: Mapping[str, Side] = {UTILIZATION: "any", TOKENS: "any", SEQUENCES: "any"}
_ALIKE: Mapping[str, Mapping[str, Side]] = {
    "kv_cache_too_small": {UTILIZATION: "lower", TOKENS: "higher", SEQUENCES: "higher", LENGTH: "higher"},
    "no_kv_memory": {UTILIZATION: "lower", TOKENS: "higher", SEQUENCES: "higher", LENGTH: "higher"},
    "free_memory_short": {UTILIZATION: "higher", TOKENS: "any", SEQUENCES: "any", LENGTH: "any"},
    "oom_load": {**_ANY_LIMIT, LENGTH: "any"},
    "oom_profile": {UTILIZATION: "any", TOKENS: "higher", SEQUENCES: "higher"},
    "oom_graph": {UTILIZATION: "higher", SEQUENCES: "higher"},
    "oom_sampler": {UTILIZATION: "higher", SEQUENCES: "higher"},
    "batched_tokens_invalid": {UTILIZATION: "any", TOKENS: "lower", SEQUENCES: "higher", LENGTH: "higher"},
    "model_len_invalid": {**_ANY_LIMIT, LENGTH: "higher"},
    "lora_rank": {**_ANY_LIMIT, RANK: "lower"},
    "unknown_flag": _ANY_LIMIT,
    "quantization_unsupported": _ANY_LIMIT,
    "dtype_unsupported": _ANY_LIMIT,
    "kernel_missing": _ANY_LIMIT,
    "missing_tool": _ANY_LIMIT,
    "missing_library": _ANY_LIMIT,
    "driver_too_old": _ANY_LIMIT,
    "version_mismatch": _ANY_LIMIT,
    "checkpoint_invalid": _ANY_LIMIT,
    "gated_model": _ANY_LIMIT,
    "lora_refused": _ANY_LIMIT,
}


@dataclass(frozen=True, slots=True)
class Failed:
    """A candidate that was given up because it does not start, and the class of its last failure."""

    candidate: Candidate
    failure_class: str


def why_foregone(candidate: Candidate, server: Mapping[str, Any], failed: Iterable[Failed]) -> str | None:
    """Why `candidate` would fail as one of `failed` did, on one line, or None. `server` are the baseline's flags.

    Careful: a flag that one of the two leaves to vLLM's default is not compared with a value, so that the point is
    tried.
    """
    for other in failed:
        sides = _ALIKE.get(other.failure_class)
        if sides is None or other.candidate.index == candidate.index:
            continue
        if _as_bad({**server, **candidate.settings}, {**server, **other.candidate.settings}, sides):
            return f"{NOT_TRIED}: it would fail as {_named(other.candidate, sides)} did ({other.failure_class})"
    return None


def _as_bad(flags: Mapping[str, Any], failed: Mapping[str, Any], sides: Mapping[str, Side]) -> bool:
    for name in {*flags, *failed}:
        side, value, other = sides.get(name), flags.get(name), failed.get(name)
        if side == "any" or (_same(value, other) and (name in flags) == (name in failed)):
            continue
        if side is None or not is_number(value) or not is_number(other):
            return False
        if (value < other) if side == "higher" else (value > other):
            return False
    return True


def _named(candidate: Candidate, sides: Mapping[str, Side]) -> str:
    told = {name: value for name, value in candidate.settings.items() if sides.get(name) != "any"}
    shown = ", ".join(f"{name} {shown_setting(name, value)}" for name, value in told.items())
    return shown or f"candidate {candidate.index}"


def smaller_that_starts(
    failure_class: str,
    numbers: Mapping[str, float | int],
    settings: Mapping[str, Any],
    server_flags: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Settings to offer in place of a candidate's `settings` that failed with these numbers of its explanation, or
    None. One flag differs; it starts if the log is right, and is a step in the right direction where it says nothing.
    """
    flags = {**server_flags, **settings}
    change = _change(failure_class, numbers, flags, UTILIZATION in settings)
    if change is None or all(_same(flags.get(name), value) for name, value in change.items()):
        return None
    return {**settings, **change}


def _change(
    failure_class: str, numbers: Mapping[str, float | int], flags: Mapping[str, Any], own_utilization: bool
) -> dict[str, Any] | None:
    if failure_class == "kv_cache_too_small":
        # A utilization that the sweep itself tries out gives way; the model's length is rarely what is compared.
        first, second = (UTILIZATION, "needed_utilization"), (LENGTH, "longest_model_len")
        return _said(numbers, *((first, second) if own_utilization else (second, first)))
    if failure_class == "no_kv_memory":
        return _said(numbers, (UTILIZATION, "needed_utilization"))
    if failure_class == "free_memory_short":
        return _said(numbers, (UTILIZATION, "highest_utilization"))
    if failure_class == "model_len_invalid":
        return _said(numbers, (LENGTH, "longest_model_len"))
    if failure_class == "lora_rank":
        return _said(numbers, (RANK, "fitting_rank"))
    if failure_class == "batched_tokens_invalid":
        if "max_num_seqs" in numbers and "max_num_batched_tokens" in numbers:
            return {SEQUENCES: numbers["max_num_batched_tokens"]}
        return _said(numbers, (TOKENS, "max_model_len"), (TOKENS, "max_tokens_per_mm_item"))
    if failure_class == "oom_profile":
        return _half(flags, TOKENS, max(FEWEST_TOKENS, _count(flags, SEQUENCES) or 0)) or _half(flags, SEQUENCES)
    if failure_class == "oom_sampler":
        tried = {SEQUENCES: int(numbers["requests"])} if "requests" in numbers else flags
        return _half(tried, SEQUENCES) or _lower(flags, numbers)
    if failure_class == "oom_graph":
        return _lower(flags, numbers) or _half(flags, SEQUENCES)
    return None


def _said(numbers: Mapping[str, float | int], *ways: tuple[str, str]) -> dict[str, Any] | None:
    return next(({flag: numbers[name]} for flag, name in ways if name in numbers), None)


def _half(flags: Mapping[str, Any], name: str, at_least: int = 1) -> dict[str, Any] | None:
    count = _count(flags, name)
    half = None if count is None else halved(count, at_least)
    return None if half is None else {name: half}


def _lower(flags: Mapping[str, Any], numbers: Mapping[str, float | int]) -> dict[str, Any] | None:
    utilization = flags.get(UTILIZATION)
    if not is_number(utilization):
        return None
    lower = lower_utilization(utilization, numbers.get("wanted_gib"), numbers.get("total_gib"))
    return None if lower is None else {UTILIZATION: lower}


def _count(flags: Mapping[str, Any], name: str) -> int | None:
    value = flags.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _same(one: Any, other: Any) -> bool:
    """1 and 1.0 are one value, 1 and true are two."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
