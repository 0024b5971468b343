"""The parts of a plan that hold `vllm serve` flags: `[server]`, the baseline, and `[grid]`, what is tried."""

import math
from difflib import get_close_matches
from typing import Any

from engine.launch.command import flag_name as one_spelling
from engine.launch.command import parse_serve
from engine.records import EngineError
from tuning.plans.plan_check import Section, is_number, shown_value

KNOBS = ("max-num-batched-tokens", "gpu-memory-utilization", "max-num-seqs")

# Flags of vLLM that look like a misspelt knob but are none.
_NEAR_KNOBS = frozenset(
    {"max-num-active-seqs", "max-num-scheduled-tokens", "max-num-queued-tokens", "max-num-queued-reqs", "max-seqs"}
    | {"max-num-partial-prefills", "device-memory-utilization", "cpu-memory-utilization"}
)

_FIX_THE_CACHE = ("kv-cache-memory-bytes", "num-gpu-blocks-override", "VLLM_CPU_KVCACHE_SPACE")
SET_BY_A_SWEEP = {  # flags of a server that a sweep sets itself
    "host": "a sweep serves on this machine's loopback only; delete it",
    "port": "a sweep chooses a free port itself; delete it",
    "model": 'belongs at the top of the plan, as model = "…"',
    "served-model-name": 'belongs at the top of the plan, as served_name = "…"',
    "hf-token": "belongs into [server.env], as HF_TOKEN",
    "api-key": "a sweep's server is reached from this machine only and needs no key; delete it",
}


def read_server(top: Section) -> tuple[dict[str, Any], dict[str, str], str | None, str | None]:
    """(flags, environment, model of a pasted line, served name of a pasted line) of `[server]`."""
    section = top.table("server", "[server]")
    flags: dict[str, Any] = {}
    model = served = None
    if paste := section.text("paste", lines=True):
        try:
            model, pasted = parse_serve(paste)
        except EngineError as error:
            section.wrong("paste", str(error))
            pasted = {}
        served = pasted.pop("served-model-name", None)
        served = served[0] if isinstance(served, list) and served else served
        flags = {name: value for name, value in pasted.items() if name not in ("host", "port", "model")}
        if "api-key" in flags:
            section.wrong("paste", f"--api-key: {SET_BY_A_SWEEP['api-key']}")
    for key, value in section.data.items():
        if key in ("env", "paste"):
            continue
        name = flag_name(section, key)
        if name in SET_BY_A_SWEEP:
            section.wrong(key, SET_BY_A_SWEEP[name])
        elif mistake := flag_mistake(name, value):
            section.wrong(key, mistake)
        flags[name] = value
    env: dict[str, str] = {}
    for key, value in section.table("env", "[server.env]").data.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float) or "\0" in str(value):
            section.wrong("env", f"must be a text in quotes, not {shown_value(value)}", key)
        elif not key or "=" in key or not key.isprintable():
            section.wrong("env", "is no name of a variable", key)
        env[key] = str(value)
    return flags, env, model, served if isinstance(served, str) else None


def check_utilization(top: Section, server: dict[str, Any], env: dict[str, str], varied: set[str]) -> None:
    """Note a grid over the utilization where something else fixes the size of the cache: it would do nothing."""
    fixed = [name for name in _FIX_THE_CACHE if name in server or name in varied or name in env]
    if "gpu-memory-utilization" in varied and fixed:
        top.wrong("grid", f"gpu-memory-utilization does nothing while {fixed[0]} fixes the cache; leave one out")


def read_grid(top: Section) -> tuple[dict[str, tuple[Any, ...]], tuple[dict[str, Any], ...]]:
    """(dimension → values, explicit candidates) of `[grid]`; one of the two is empty."""
    section = top.table("grid", "[grid]")
    explicit = _explicit(section)
    grid: dict[str, tuple[Any, ...]] = {}
    for key, values in section.data.items():
        if key == "candidates":
            continue
        name = flag_name(section, key)
        if name in SET_BY_A_SWEEP:
            section.wrong(key, "cannot be varied: a sweep sets it itself; delete it")
        elif name in grid:
            section.wrong(key, f"stands twice (as {name} too); keep one of them")
        elif not isinstance(values, list):
            section.wrong(key, f"must be a list of values, as {name} = [{shown_value(values)}]")
        elif not values:
            section.wrong(key, "has no values; give it at least one, or delete the line")
        else:
            for index, value in enumerate(values):
                if mistake := flag_mistake(name, value):
                    section.wrong(key, mistake, index)
            grid[name] = tuple(values)
    if "candidates" in section.data and len(section.data) > 1:
        section.wrong("candidates", "stands in place of the other lines of [grid]; keep one or the other")
    elif not section.data:
        to_do = "name at least one flag with values, as max-num-seqs = [64, 256]"
        if "grid" in top.data:
            section.wrong(None, f"is empty: {to_do}")
        else:
            top.wrong(None, f"there is no [grid]: {to_do}")
    return grid, explicit


def _explicit(section: Section) -> tuple[dict[str, Any], ...]:
    items = section.data.get("candidates", [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        section.wrong("candidates", "must be a list of tables, as candidates = [{max-num-seqs = 64}]")
        return ()
    if "candidates" in section.data and not items:
        section.wrong("candidates", "has no entries; give it at least one, as [{max-num-seqs = 64}]")
    found: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        settings: dict[str, Any] = {}
        for key, value in item.items():
            name = flag_name(section, key, "candidates", index)
            if name in SET_BY_A_SWEEP:
                section.wrong("candidates", f"{name} cannot be varied: a sweep sets it itself; delete it", index)
            elif mistake := flag_mistake(name, value):
                section.wrong("candidates", f"{name} {mistake}", index)
            settings[name] = value
        found.append(settings)
    return tuple(found)


def flag_name(section: Section, key: str, *inner: str | int) -> str:
    """`key` as vLLM's command line spells it: dashes, none in front. A misspelt knob is noted with a hint."""
    name = one_spelling(key)
    if name not in KNOBS and name not in _NEAR_KNOBS and (near := get_close_matches(name, KNOBS, 1, cutoff=0.8)):
        section.wrong(inner[0] if inner and isinstance(inner[0], str) else key, f"did you mean {near[0]}?", *inner[1:])
    return name


def flag_mistake(name: str, value: object) -> str | None:
    """What is wrong with `value` as the value of the `vllm serve` flag `name`, or None."""
    if name == "gpu-memory-utilization":
        if not is_number(value) or not 0 < value <= 1:
            return f"must be above 0 and at most 1, not {shown_value(value)}"
    elif name in KNOBS and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        return f"must be a whole number of at least 1, not {shown_value(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be finite, not {shown_value(value)}"
    if isinstance(value, str) and not value.isprintable():
        return f"holds characters that cannot be shown: {shown_value(value)}"
    if value == "" or not isinstance(value, str | int | float | bool | list | dict):
        return f"cannot be a flag's value: {shown_value(value)}"
    return None
