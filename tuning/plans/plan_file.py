"""A plan as a TOML file: read with every mistake reported by line and key, written so that it reads back equal."""

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.launch.local_paths import absolute_flags
from engine.launch.model import check_model
from engine.records import EngineError
from tuning.plans import lora_modules
from tuning.plans.condition import ConditionError, read_condition
from tuning.plans.limits import check_metric, read_limit
from tuning.plans.plan_check import Mistakes, Section, beside, exists, shown_value
from tuning.plans.plan_flags import check_utilization, read_grid, read_server
from tuning.plans.plan_secrets import refuse_secrets
from tuning.plans.plan_workload import read_workload, workload_toml
from tuning.records import Budget, Decide, Plan, PlanError, Workload
from tuning.verdict.boundary import MOST_BLOCKS

_TOP = (
    *("name", "model", "served_name", "vllm", "screen", "calibrate"),
    *("server", "grid", "skip", "workload", "decide", "budget"),
)
_MISPLACED = {
    "workloads": "unknown key; write [[workload]], once for each",
    "candidates": "belongs below [grid]",
    "served-model-name": "unknown key; did you mean served_name?",
}
_MOST_RUNS = 1000  # of one launch; the seeds of a launch are counted below this

ModelCheck = Callable[[str], None]


def load_plan(path: Path | str) -> Plan:
    """The plan in a file; PlanError when it cannot be read or holds mistakes."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlanError(f"{file}: there is no such plan file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PlanError(f"{file}: cannot read the plan: {reason}") from None
    return read_plan(text, str(file))


def read_plan(
    text: str,
    where: str = "plan.toml",
    *,
    check_model: ModelCheck = check_model,
) -> Plan:
    """Parse and check a plan. PlanError carries all mistakes, one line each: `plan.toml:12: [grid] …: what to do`.

    `where` is the file's name for those lines; paths in the plan are relative to its folder and come back absolute.
    `check_model` raises EngineError for a model that is none.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(_syntax_line(str(error), text, where)) from None
    mistakes = Mistakes(text, where)
    folder = Path(where).resolve().parent
    top = Section(data, (), "", mistakes)
    top.only(_TOP, _MISPLACED)
    refuse_secrets(data, mistakes)
    server, server_env, pasted_model, pasted_name = read_server(top)
    workloads = _workloads(top, folder)
    calibrate = top.flag("calibrate", default=False)
    grid, explicit = ({}, ()) if calibrate and "grid" not in data else read_grid(top)
    check_utilization(top, server, server_env, {name for point in (grid, *explicit) for name in point})
    plan = Plan(
        name=top.text("name", Path(where).stem) or "",
        model=_model(top, pasted_model, folder, check_model),
        workloads=workloads,
        served_name=top.text("served_name", pasted_name),
        vllm=_program(top.text("vllm"), folder),
        screen=_screen(top),
        calibrate=calibrate,
        server=absolute_flags(server, folder),
        server_env=server_env,
        grid={name: tuple(absolute_flags({name: value}, folder)[name] for value in grid[name]) for name in grid},
        explicit_candidates=tuple(absolute_flags(settings, folder) for settings in explicit),
        skip=_skip(top),
        decide=_decide(top, list(dict.fromkeys(workload.name for workload in workloads))),
        budget=_budget(top),
    )
    _check_adapters(top, plan)
    mistakes.raise_any()
    return plan


def plan_toml(plan: Plan) -> str:
    """The plan as a file that `read_plan` reads back equal (given absolute paths, or the same folder)."""
    import tomli_w

    document: dict[str, Any] = {"name": plan.name, "model": plan.model}
    document |= {key: getattr(plan, key) for key in ("served_name", "vllm") if getattr(plan, key) is not None}
    document["screen"] = plan.screen
    if plan.calibrate:
        document["calibrate"] = True
    document["server"] = {**plan.server, **({"env": plan.server_env} if plan.server_env else {})}
    document["grid"] = {name: list(values) for name, values in plan.grid.items()}
    if plan.explicit_candidates:
        document["grid"]["candidates"] = [dict(settings) for settings in plan.explicit_candidates]
    document["skip"] = [{"when": when} for when in plan.skip]
    document["workload"] = [workload_toml(workload) for workload in plan.workloads]
    decide, budget = plan.decide, plan.budget
    document["decide"] = {
        "metric": decide.metric,
        "smallest_effect": decide.smallest_effect,
        "error": decide.error,
        "blocks": decide.blocks,
        "limits": list(decide.limits),
    }
    amounts = {"hours": budget.hours, "gpu_price_per_hour": budget.gpu_price_per_hour, "money": budget.money}
    document["budget"] = {key: value for key, value in amounts.items() if value is not None}
    document["budget"]["on_finish"] = budget.on_finish
    for key in ("skip", "grid"):
        if not document[key]:
            del document[key]
    return tomli_w.dumps(document)


def _syntax_line(message: str, text: str, where: str) -> str:
    """tomllib says `… (at line 3, column 5)` or `… (at end of document)`."""
    place = re.search(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    if place is None:
        return f"{where}: not TOML: {message}"
    line = place[1] or str(text.rstrip().count("\n") + 1)
    column = f" (column {place[2]})" if place[2] else ""
    return f"{where}:{line}: not TOML: {message[: place.start()]}{column}"


def _model(top: Section, pasted: str | None, folder: Path, check: ModelCheck) -> str:
    name = top.text("model", pasted)
    if name is None:
        if "model" not in top.data:
            top.wrong(None, 'the plan names no model; add model = "PATH or hub name"')
        return ""
    local = beside(folder, name)
    if not exists(local) and not name.startswith((".", "~")):
        local = Path(name).resolve()
    model = str(local) if exists(local) or name.startswith((".", "~")) else name
    try:
        check(model)
    except EngineError as error:
        top.wrong("model", str(error))
    return model


def _check_adapters(top: Section, plan: Plan) -> None:
    settings = [*plan.explicit_candidates, *({name: value} for name, values in plan.grid.items() for value in values)]
    servers = [plan.server, *settings]
    for workload in plan.workloads:
        if missing := lora_modules.unknown(workload, servers):
            top.wrong(
                "workload",
                f'"{workload.name}" addresses {shown_value(missing[0])}, which no server of the plan has: '
                'name it in lora-modules, as ["NAME=/folder"]',
            )


def _program(name: str | None, folder: Path) -> str | None:
    """A path is relative to the plan; a bare word is looked up on PATH later. Links stay: a venv's python is one."""
    if name is None or "/" not in name:
        return name
    return str(folder / os.path.expanduser(name))


def _screen(top: Section) -> str:
    screen = top.text("screen", "fresh")
    if screen == "hot":
        top.wrong("screen", '"hot" cannot be done yet; use "fresh" or delete the line')
    elif screen != "fresh":
        top.wrong("screen", f'must be "fresh", not {shown_value(screen)}')
    return "fresh"


def _skip(top: Section) -> tuple[str, ...]:
    rules: list[str] = []
    for section in top.tables("skip", "[[skip]]"):
        section.only(("when",))
        when = section.text("when")
        if when is None:
            section.wrong(None, 'needs a condition, as when = "max-num-batched-tokens < max-num-seqs"')
            continue
        try:
            read_condition(when)
        except ConditionError as error:
            section.wrong("when", str(error))
        rules.append(when)
    return tuple(rules)


def _workloads(top: Section, folder: Path) -> tuple[Workload, ...]:
    sections = top.tables("workload", "[[workload]]")
    if not sections and "workload" not in top.data:
        top.wrong(None, "there is no [[workload]]: describe at least one, with name, dataset and requests")
    found: list[Workload] = []
    for section in sections:
        workload = read_workload(section, folder)
        if workload is None:
            continue
        if workload.name and any(workload.name == other.name for other in found):
            section.wrong("name", f'"{workload.name}" is used twice; each workload needs a name of its own')
        found.append(workload)
    if sum(workload.warmup + workload.repeats for workload in found) > _MOST_RUNS:
        top.wrong("workload", f"a launch would make more than {_MOST_RUNS} runs; lower repeats or warmup")
    return tuple(found)


def _decide(top: Section, workloads: list[str]) -> Decide:
    section = top.table("decide", "[decide]")
    section.only(("metric", "smallest_effect", "error", "blocks", "limits"))
    usual = Decide()
    limits = section.texts("limits")
    for index, limit in enumerate(limits):
        try:
            read_limit(limit, workloads)
        except ValueError as error:
            section.wrong("limits", str(error), index)
    return Decide(
        metric=_deciding_metric(section, workloads),
        smallest_effect=section.number("smallest_effect", usual.smallest_effect, above=0, below=1) or 0.0,
        error=section.number("error", usual.error, above=0, below=0.5) or 0.0,
        blocks=section.whole("blocks", usual.blocks, low=1, high=MOST_BLOCKS) or 1,
        limits=limits,
    )


def _deciding_metric(section: Section, workloads: list[str]) -> str | dict[str, str]:
    metric = section.data.get("metric", Decide().metric)
    by_workload = metric if isinstance(metric, dict) else {None: metric}
    if not by_workload:
        section.wrong("metric", "names no metric; delete the line to decide by total_tok_per_s")
    for workload, name in by_workload.items():
        inner = () if workload is None else (workload,)
        if workload is not None and workload not in workloads:
            section.wrong("metric", f"no workload of this plan is named so; it has {', '.join(workloads)}", *inner)
        elif not isinstance(name, str):
            section.wrong("metric", f"must be a metric's name in quotes, not {shown_value(name)}", *inner)
        else:
            try:
                check_metric(name)
            except ValueError as error:
                section.wrong("metric", str(error), *inner)
    return metric if isinstance(metric, str | dict) else Decide().metric


def _budget(top: Section) -> Budget:
    section = top.table("budget", "[budget]")
    section.only(("hours", "gpu_price_per_hour", "money", "on_finish"))
    money = section.number("money", None, above=0)
    price = section.number("gpu_price_per_hour", None, low=0)
    if money is not None and not price:
        section.wrong("money", "cannot be watched without a price; add gpu_price_per_hour")
    return Budget(section.number("hours", None, above=0), price, money, section.text("on_finish", "", lines=True) or "")
