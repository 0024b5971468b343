"""The plan as the Tune screen edits it: lines of text on one side, a `Plan` on the other. No widgets here.

A field that the form does not show (skip rules, environment, a workload's goodput) is kept from the plan that the form
was filled from.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.launch.command import parse_serve_line
from engine.records import EngineError
from engine.text import clean
from tui.tune.grid_text import DEFAULT, parse_points, points_text, product_of
from tuning.records import Budget, Decide, Plan, PlanError, Workload


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
    effect: str = ""  # the smallest worth having, in percent
    blocks: str = ""
    limits: str = ""  # separated by commas
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
        effect=f"{100 * plan.decide.smallest_effect:.10g}",
        blocks=str(plan.decide.blocks),
        limits=", ".join(plan.decide.limits),
        hours="" if plan.budget.hours is None else f"{plan.budget.hours:g}",
        price="" if plan.budget.gpu_price_per_hour is None else f"{plan.budget.gpu_price_per_hour:g}",
    )


def plan_of(form: PlanForm, base: Plan) -> Plan:
    """The plan that the form says, on top of what `base` holds beside it.

    Raises PlanError with one line a mistake, each naming the field. What can only be said of a whole plan is left to
    `tuning.plans.plan_file`.
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
    effect = _number("smallest effect", form.effect, mistakes)
    hours = _number("hours", form.hours, mistakes)
    price = _number("price", form.price, mistakes)
    metric = _metric(form.metric.strip() or "total_tok_per_s", mistakes)
    if mistakes:
        raise PlanError("\n".join(mistakes))
    decide = replace(
        base.decide,
        metric=metric,
        blocks=Decide().blocks if blocks is None else int(blocks),
        smallest_effect=Decide().smallest_effect if effect is None else round(effect / 100, 12),
        limits=tuple(limit.strip() for limit in form.limits.split(",") if limit.strip()),
    )
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
