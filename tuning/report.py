"""A session as text to keep: Markdown for reading, JSON with everything, CSV with a row for each run."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from engine.command import copyable, serve_argv
from engine.records import Installation, ServerSpec
from engine.text import clean
from store.records import LaunchRecord, RunRecord, SessionRecord
from tuning.figures import ABSENT, duration_text, effect_text, figure, metric_title, summary_text
from tuning.limited_by import agreed, example
from tuning.plan_json import candidates_from_json, plan_from_json
from tuning.records import RUN_METRICS, Candidate, CandidateResult, Effect, Plan, SessionResult, Summary
from tuning.schedule import launch_runs
from tuning.workload_args import bench_argv

SCHEMA = 1
_HOST, _PORT = "127.0.0.1", 8000
_NO_VERDICT = (
    "No verdict is given here. An interval needs at least 2 blocks; with fewer, a difference cannot be told from noise."
)
_RUN_COLUMNS = ("block", "candidate", "slot", "workload", "kind", "repeat", "seed", "state")


def markdown(result: SessionResult, session: SessionRecord) -> str:
    """The session as Markdown: a table for each workload, what failed, the environment, and the commands to copy."""
    plan = plan_from_json(session.plan)
    candidates = candidates_from_json(session.candidates)
    lines = [f"# Session {result.session_id}: {_plain(result.name)}", "", _state(result, session), "", _note(plan), ""]
    for workload in plan.workloads:
        of_workload = [each for each in result.results if each.workload == workload.name]
        lines += _workload_part(workload.name, result.metric.get(workload.name), of_workload)
    lines += _failures(result.results)
    lines += _environment(result.environment)
    lines += _commands(plan, candidates, session.seed)
    return "\n".join(lines).rstrip() + "\n"


def to_json(
    result: SessionResult, session: SessionRecord, launches: Sequence[LaunchRecord], runs: Sequence[RunRecord]
) -> str:
    """Everything that is known of the session as one JSON object; `raw` of a run is there where the store gave it."""
    plan = plan_from_json(session.plan)
    document = {
        "schema": SCHEMA,
        "session": asdict(session),
        "result": asdict(result),
        "commands": {
            candidate.label: serve_command(plan, candidate) for candidate in candidates_from_json(session.candidates)
        },
        "launches": [asdict(launch) for launch in launches],
        "runs": [asdict(run) for run in runs],
    }
    return json.dumps(_clean(document), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def to_csv(session: SessionRecord, runs: Sequence[RunRecord]) -> str:
    """One row for each run, warm-ups and rejected ones too, with every metric; what is unknown is empty."""
    labels = {candidate.index: candidate for candidate in candidates_from_json(session.candidates)}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        (
            "session",
            "run",
            *_RUN_COLUMNS,
            "label",
            "settings",
            "reason",
            "limited_by",
            "started_at",
            "finished_at",
            *RUN_METRICS,
        )
    )
    for run in runs:
        candidate = labels.get(run.candidate)
        settings = json.dumps(candidate.settings, sort_keys=True) if candidate else ""
        label = candidate.label if candidate else ""
        texts = (label, settings, run.reason, run.limited_by, run.started_at, run.finished_at)
        writer.writerow(
            (
                *(_cell(each) for each in (run.session_id, run.id)),
                *(_cell(getattr(run, column)) for column in _RUN_COLUMNS),
                *(_cell(text) for text in texts),
                *(_cell(run.metrics.get(metric)) for metric in RUN_METRICS),
            )
        )
    return out.getvalue()


def serve_command(plan: Plan, candidate: Candidate) -> str:
    """The line that serves the candidate, to paste into a shell; secrets are hidden."""
    spec = ServerSpec(
        model=plan.model,
        host=_HOST,
        port=_PORT,
        flags={**plan.server, **candidate.settings},
        served_name=plan.served_name,
        env=plan.server_env,
    )
    program = plan.vllm or "vllm"
    return copyable(serve_argv(Installation(program, "", (program,), "", ""), spec), plan.server_env)


def _state(result: SessionResult, session: SessionRecord) -> str:
    parts = [
        f"{result.state}",
        f"{result.blocks_done} of {result.blocks_planned} blocks",
        f"{result.launches_done} of {result.launches_planned} launches",
        f"{result.runs_done} of {result.runs_planned} runs",
        f"{duration_text(result.seconds_used)} of launches",
    ]
    if result.money_used is not None:
        parts.append(f"cost {result.money_used:.2f}")
    if result.seconds_left:
        parts.append(f"about {duration_text(result.seconds_left)} left")
    line = ", ".join(parts) + "."
    return f"{line} {_plain(session.message)}" if session.message else line


def _note(plan: Plan) -> str:
    confidence = f"{100 * (1 - plan.decide.error):g} %"
    return (
        f"{_NO_VERDICT} Each launch counts once, its runs averaged. Behind a mean stands its {confidence} t interval "
        "over launches, behind a difference that of the paired log ratios over blocks, each for itself and not "
        "corrected for looking at many. Two launches leave one degree of freedom, so such an interval is wide."
    )


def _workload_part(name: str, metric: str | None, results: Sequence[CandidateResult]) -> list[str]:
    shown = metric or "total_tok_per_s"
    role = f"decided by {metric_title(shown)}" if metric else "decides nothing"
    lines = [f"## {_plain(name)}: {role}", ""]
    header = ["candidate", "launches", metric_title(shown), "vs default"]
    header += [metric_title("p99_ttft_ms"), "vs default", "limited by", "rejected runs", "failures"]
    rows = []
    for each in results:
        summary, tail = each.summaries.get(shown), each.summaries.get("p99_ttft_ms")
        rows.append(
            [
                _plain(each.candidate.label),
                str(summary.n if summary else 0),
                summary_text(summary),
                _effect(each, shown),
                summary_text(tail),
                _effect(each, "p99_ttft_ms"),
                agreed(each.limited_by) or ABSENT,
                str(each.rejected or ABSENT),
                str(len(each.failures) or ABSENT),
            ]
        )
    lines += [*_table(header, rows), "", *_limits(results)]
    metrics = [metric for metric in RUN_METRICS if any(metric in each.summaries for each in results)]
    if metrics:
        lines += ["Every metric, mean ± standard deviation between launches:", ""]
        header = ["metric", *(_plain(each.candidate.label) for each in results)]
        rows = [
            [metric_title(metric), *(_spread(each.summaries.get(metric)) for each in results)] for metric in metrics
        ]
        lines += [*_table(header, rows), ""]
    return lines


def _limits(results: Iterable[CandidateResult]) -> list[str]:
    """What limited each candidate's runs, whole, by the newest run of those that agree."""
    said = [
        f"- {_plain(each.candidate.label)}: {_plain(example(each.limited_by))}" for each in results if each.limited_by
    ]
    return ["What limited the server, by the newest run that says so:", "", *said, ""] if said else []


def _effect(result: CandidateResult, metric: str) -> str:
    if result.candidate.index == 0:
        return "baseline"
    effect: Effect | None = result.effects.get(metric)
    return effect_text(effect)


def _spread(summary: Summary | None) -> str:
    if summary is None:
        return ABSENT
    return figure(summary.mean) if summary.sd is None else f"{figure(summary.mean)} ± {figure(summary.sd)}"


def _failures(results: Iterable[CandidateResult]) -> list[str]:
    reasons = {each.candidate.label: each.failures for each in results if each.failures}
    if not reasons:
        return []
    lines = ["## What failed", ""]
    lines += [f"- {_plain(label)}: {_plain(reason)}" for label, found in reasons.items() for reason in found]
    return [*lines, ""]


def _environment(environment: dict[str, Any]) -> list[str]:
    lines = ["## Environment", ""]
    for key, value in environment.items():
        text = value if isinstance(value, str) else json.dumps(_clean(value), ensure_ascii=False)
        lines.append(f"- {_plain(key)}: {ABSENT if value is None else _plain(text)}")
    return [*lines, ""]


def _commands(plan: Plan, candidates: Sequence[Candidate], seed: int) -> list[str]:
    lines = ["## Commands", ""]
    for candidate in candidates:
        lines += [f"{_plain(candidate.label)}:", "", f"    {clean(serve_command(plan, candidate))}", ""]
    runs = launch_runs(plan, seed, 0)
    for workload in plan.workloads:
        example = next(run.seed for run in runs if (run.workload, run.kind) == (workload.name, "measured"))
        argv = bench_argv(workload, plan.model, plan.served_name, f"http://{_HOST}:{_PORT}", example)
        lines += [f"{_plain(workload.name)}, each run with a seed of its own:", ""]
        lines += [f"    {clean(copyable([plan.vllm or 'vllm', 'bench', 'serve', *argv]))}", ""]
    return lines


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line and in one table cell."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", clean(text))


def _clean(value: Any) -> Any:
    """JSON types throughout: no control characters but line ends, only finite numbers."""
    if isinstance(value, str):
        return "\n".join(clean(line) for line in value.split("\n"))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = clean(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
