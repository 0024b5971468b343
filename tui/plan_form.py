"""The plan as the Tune screen edits it: lines of text on one side, a `Plan` on the other. No widgets here.

A field that the form does not show (limits, skip rules, environment, a workload's goodput) is kept from the plan that
the form was filled from.
"""

import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.command import parse_serve_line
from engine.records import EngineError
from engine.text import clean
from tuning.records import Budget, Decide, Plan, PlanError, Workload

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class PlanForm:
    """The texts of the editor's fields, exactly as typed."""

    name: str = ""
    model: str = ""
    served_name: str = ""
    vllm: str = ""
    baseline: str = ""  # flags, or a whole `vllm serve …` line
    grid: str = ""  # one dimension a line
    workloads: tuple[Workload, ...] = ()
    metric: str = ""
    blocks: str = ""
    hours: str = ""
    price: str = ""


def form_of(plan: Plan) -> PlanForm:
    """The texts that stand for a plan."""
    return PlanForm(
        name=plan.name,
        model=plan.model,
        served_name=plan.served_name or "",
        vllm=plan.vllm or "",
        baseline=flags_text(plan.server),
        grid=points_text(plan),
        workloads=plan.workloads,
        metric=plan.decide.metric if isinstance(plan.decide.metric, str) else json.dumps(plan.decide.metric),
        blocks=str(plan.decide.blocks),
        hours="" if plan.budget.hours is None else f"{plan.budget.hours:g}",
        price="" if plan.budget.gpu_price_per_hour is None else f"{plan.budget.gpu_price_per_hour:g}",
    )


def plan_of(form: PlanForm, base: Plan) -> Plan:
    """The plan that the form says, on top of what `base` holds beside it.

    Raises PlanError with one line a mistake, each naming the field. What can only be said of a whole plan is left to
    `tuning.plan_file`.
    """
    mistakes: list[str] = []
    model, served_name, server, env = form.model.strip(), form.served_name.strip(), base.server, base.server_env
    try:
        pasted_model, server, pasted_env = _baseline(form.baseline)
        env = {**env, **pasted_env}
        model = model or pasted_model
        pasted_name = server.get("served-model-name") or ""
        served_name = served_name or str(pasted_name[0] if isinstance(pasted_name, list) else pasted_name)
        server = {flag: value for flag, value in server.items() if flag not in ("host", "port", "served-model-name")}
    except (EngineError, ValueError) as error:
        mistakes.append(f"baseline: {error}")
    grid, explicit = base.grid, base.explicit_candidates
    try:
        grid, explicit = _points(form.grid)
    except PlanError as error:
        mistakes += str(error).splitlines()
    if not model:
        mistakes.append("model: say which model to serve, as a path or a hub name")
    if not form.workloads:
        mistakes.append("workloads: there is none; add one with `a` in the list")
    blocks = _number("blocks", form.blocks, mistakes, whole=True)
    hours = _number("hours", form.hours, mistakes)
    price = _number("price", form.price, mistakes)
    metric = _metric(form.metric.strip() or "total_tok_per_s", mistakes)
    if mistakes:
        raise PlanError("\n".join(mistakes))
    decide = replace(base.decide, metric=metric, blocks=Decide().blocks if blocks is None else int(blocks))
    return replace(
        base,
        name=form.name.strip() or "untitled",
        model=model,
        served_name=served_name or None,
        vllm=form.vllm.strip() or None,
        server=server,
        server_env=env,
        grid=grid,
        explicit_candidates=explicit,
        workloads=form.workloads,
        decide=decide,
        budget=replace(base.budget or Budget(), hours=hours, gpu_price_per_hour=price),
    )


def parse_points(text: str) -> tuple[dict[str, tuple[Any, ...]], tuple[dict[str, Any], ...]]:
    """(dimensions, single candidates) of the editor's lines.

    `max-num-seqs: default 64 256` is a dimension, its values separated by blanks or commas; `default` leaves the flag
    out. `+ max-num-seqs=64 block-size=32` is one candidate more. `#` starts a comment. Raises PlanError, one line a
    mistake.
    """
    grid: dict[str, tuple[Any, ...]] = {}
    single: list[dict[str, Any]] = []
    mistakes: list[str] = []
    for at, line in enumerate(text.splitlines(), start=1):
        stripped = line.split("#", 1)[0].strip()
        if not stripped:
            continue
        try:
            if stripped.startswith("+"):
                single.append(settings_of(stripped[1:]))
                continue
            flag, values = _dimension(stripped)
        except PlanError as error:
            mistakes.append(f"grid line {at}: {error}")
            continue
        if flag in grid:
            mistakes.append(f"grid line {at}: {flag} stands there twice; put all its values on one line")
        grid[flag] = values
    if mistakes:
        raise PlanError("\n".join(mistakes))
    return grid, tuple(single)


def _dimension(line: str) -> tuple[str, tuple[Any, ...]]:
    flag, colon, rest = line.partition(":")
    flag = flag.strip().lstrip("-").replace("_", "-")
    if not colon or not flag or " " in flag:
        raise PlanError("write a flag, a colon and its values, e.g. max-num-seqs: default 64 256")
    words = _words(rest if "{" in rest else rest.replace(",", " "))
    if not words:
        raise PlanError(f"{flag} has no values")
    return flag, tuple(_value(word) for word in words)


def points_text(plan: Plan) -> str:
    """The editor's lines for a plan's grid or candidates; the inverse of `parse_points`."""
    dimensions = plan.grid or dimensions_of(plan.explicit_candidates)
    if dimensions:
        return "\n".join(f"{flag}: {' '.join(map(_quoted, values))}" for flag, values in dimensions.items())
    return "\n".join("+ " + settings_text(settings) for settings in plan.explicit_candidates)


def dimensions_of(candidates: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]] | None:
    """The dimensions whose product these candidates are, the empty one being the baseline; None where they are no
    product and so have no lines in the editor."""
    fullest_first = sorted(candidates, key=len, reverse=True)
    flags = dict.fromkeys(flag for settings in fullest_first for flag in settings)
    dimensions = {
        flag: tuple(dict.fromkeys(value_text(each.get(flag)) for each in ({}, *candidates))) for flag in flags
    }
    typed = {flag: tuple(_value(text) for text in values) for flag, values in dimensions.items()}
    same = len(candidates) == len(product_of(typed)) and all(each in candidates for each in product_of(typed))
    return typed if candidates and same else None


def product_of(dimensions: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Every point of the dimensions, without the one that leaves out all flags: that is the baseline."""
    points = itertools.product(*dimensions.values())
    made = [{flag: at for flag, at in zip(dimensions, point, strict=True) if at != DEFAULT} for point in points]
    return [settings for settings in made if settings]


def settings_of(text: str) -> dict[str, Any]:
    """One candidate as a person types it: `max-num-seqs=128 gpu-memory-utilization=0.93`. Raises PlanError."""
    settings: dict[str, Any] = {}
    for word in _words(text):
        flag, equals, value = word.partition("=")
        flag = flag.lstrip("-").replace("_", "-")
        if not equals or not flag or not value:
            raise PlanError(f"{clean(word, 60)}: write flag=value, e.g. max-num-seqs=128")
        settings[flag] = _value(value)
    if not settings:
        raise PlanError("write at least one setting, e.g. max-num-seqs=128")
    return settings


def settings_text(settings: Mapping[str, Any]) -> str:
    """What `settings_of` reads."""
    return " ".join(f"{flag}={_quoted(value)}" for flag, value in settings.items())


def flags_text(flags: Mapping[str, Any]) -> str:
    """Flags as one shell line, the way `vllm serve` takes them."""
    words: list[str] = []
    for flag, value in flags.items():
        if value is True:
            words.append(f"--{flag}")
        elif value is False:
            words.append(f"--no-{flag}")
        elif isinstance(value, list | tuple):
            words += [f"--{flag}", *map(str, value)]
        else:
            words += [f"--{flag}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return shlex.join(words)


def value_text(value: Any) -> str:
    """One setting's value as the grid line and the table show it; None is the server's own default."""
    if value is None:
        return DEFAULT
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def workload_line(workload: Workload) -> str:
    """One line of the list of workloads."""
    load = f"{workload.requests} requests"
    if workload.max_concurrency is not None:
        load += f", {workload.max_concurrency} at once"
    if workload.request_rate is not None:
        load += f", {workload.request_rate:g}/s"
    shape = " ".join(f"{key} {value}" for key, value in workload.shape.items() if value)
    parts = [f"{workload.name}: {workload.dataset}", load, f"{workload.warmup} warm-up + {workload.repeats} repeats"]
    return clean(" · ".join([*parts, *([workload.path] if workload.path else []), *([shape] if shape else [])]))


def _points(text: str) -> tuple[dict[str, tuple[Any, ...]], tuple[dict[str, Any], ...]]:
    """(grid, explicit candidates). A plan's grid has no word for a flag left out and holds no single candidates, so
    with either of them all points are spelt out."""
    dimensions, single = parse_points(text)
    if single or any(DEFAULT in values for values in dimensions.values()):
        return {}, (*(product_of(dimensions) if dimensions else ()), *single)
    return dimensions, ()


def _baseline(text: str) -> tuple[str, dict[str, Any], dict[str, str]]:
    """(model, flags, environment) of bare flags or of a pasted `vllm serve` line."""
    words = text.strip()
    if not words:
        return "", {}, {}
    bare = words.startswith("-")
    pasted = parse_serve_line(f"vllm serve MODEL {words}" if bare else words)
    return "" if bare else pasted.model, pasted.flags, pasted.env


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise PlanError(f"a quote is not closed: {error}") from None


def _quoted(value: Any) -> str:
    return shlex.quote(value_text(value))


def _value(word: str) -> Any:
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if word.startswith(("{", "[")):
        try:
            return json.loads(word)
        except ValueError:
            return word
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _number(field: str, text: str, mistakes: list[str], *, whole: bool = False) -> float | None:
    words = text.strip().lstrip("$")
    if not words:
        return None
    try:
        value = float(int(words) if whole else float(words))
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        mistakes.append(f"{field}: {words!r} is not a {'whole ' if whole else ''}number above 0")
        return None
    return value


def _metric(text: str, mistakes: list[str]) -> str | dict[str, str]:
    if not text.startswith("{"):
        return text
    try:
        parsed = json.loads(text)
    except ValueError:
        mistakes.append('metric: write one name, or {"workload": "name", …}')
        return ""
    return {str(key): str(value) for key, value in parsed.items()}
