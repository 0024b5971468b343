"""A run in words and marks: its title, its own benchmark command, what happened around it."""

from collections.abc import Iterable

from engine.launch.command import copyable
from engine.text import clean
from store.clock import unix_seconds
from store.reader import RunLine
from store.records import EventRecord, RunRecord, ServerRecord, SessionRecord
from tui.metric_text import metric_value
from tui.runs.run_charts import Mark
from tui.tune.tune_source import plan_of_session
from tuning.checks.finding import evidence_of, numbers_text
from tuning.plans.workload_args import bench_argv

RUN_GLYPHS = {"running": "▶", "done": "✓", "rejected": "✗", "failed": "!", "abandoned": "–"}


def kind_words(kind: str, repeat: int) -> str:
    """`warm-up 1`, `run 2`."""
    return f"{'warm-up' if kind == 'warmup' else 'run'} {repeat + 1}"


def candidate_label(session: SessionRecord, index: int) -> str:
    """The candidate's own words, `default` for the baseline."""
    if index == 0:
        return "default"
    found = next((one for one in session.candidates if one.get("index") == index), {})
    return clean(str(found.get("label", index)), 40)


def run_title(session: SessionRecord, run: RunRecord) -> str:
    """State, candidate, workload, repeat, what it came to, session: what tells runs apart first."""
    words = [
        f"{RUN_GLYPHS.get(run.state, '')} {run.state}",
        f"[{candidate_label(session, run.candidate)}]",
        f"{clean(run.workload, 24)} {kind_words(run.kind, run.repeat)}",
        f"block {run.block + 1}",
    ]
    for metric, name in (("total_tok_per_s", "{} tok/s"), ("p99_ttft_ms", "p99 TTFT {}")):
        value = run.metrics.get(metric)
        if value is not None:
            words.append(name.format(metric_value(metric, value)))
    return "  ".join([*words, f'session {session.id} "{clean(session.name, 40)}"'])


def found_words(run: RunRecord) -> tuple[str, ...]:
    """Why it does not count with the evidence, what else was found, and notes on one that counts: a line each. Of one
    of an older version the reason alone."""
    found = evidence_of(run)
    lines = [clean(run.reason, 400)] if run.reason else []
    for finding in found:
        if finding.reason not in lines:
            lines.append(f"{'also' if finding.rejects else 'note'}: {finding.reason}")
        if finding.rejects and finding.numbers:
            lines.append(f"evidence: {numbers_text(finding)}")
    return tuple(lines)


def bench_command(session: SessionRecord, run: RunRecord, server: ServerRecord | None) -> str:
    """The run's own `vllm bench serve`, as a shell takes it; "" where the plan can no longer be read."""
    plan = plan_of_session(session)
    workload = next((one for one in plan.workloads if one.name == run.workload), None) if plan is not None else None
    if plan is None or workload is None or server is None:
        return ""
    begin = server.command[: server.command.index("serve")] if "serve" in server.command else ["vllm"]
    argv = bench_argv(workload, server.model, server.served_name, server.url, run.seed, server.vllm_version)
    return copyable([*begin, "bench", "serve", *argv])


def run_marks(runs: Iterable[RunLine], zero: float, ends: bool = False) -> list[Mark]:
    """Where runs begin: `w` a warm-up, `r` a measured one; with `ends`, where they end: `e`."""
    marks = []
    for run in runs:
        words = f"{clean(run.workload, 24)} {kind_words(run.kind, run.repeat)}"
        if run.started_at:
            glyph = "w" if run.kind == "warmup" else "r"
            marks.append(Mark(unix_seconds(run.started_at) - zero, glyph, f"{words} {run.state}"))
        if ends and run.finished_at:
            marks.append(Mark(unix_seconds(run.finished_at) - zero, "e", f"{words} ended"))
    return marks


def event_marks(events: list[EventRecord], zero: float) -> list[Mark]:
    """What was written down of a server while it ran."""
    glyphs = {"info": "i", "warning": "!", "error": "!"}
    return [Mark(unix_seconds(one.at) - zero, glyphs.get(one.level, "i"), clean(one.text, 200)) for one in events]


def load_marks(begun: float, ended: float | None) -> list[Mark]:
    """Where the run and its load began and ended, in seconds from zero. Of a run that goes on it is not known yet when
    its load began (`ended` None)."""
    if ended is None:
        return [Mark(begun, "▶", "the run began", True)]
    marks = [Mark(0.0, "▶", "the load began", True), Mark(ended, "■", "the load ended", True)]
    return [*marks, Mark(begun, "s", "the run began: prompts are made")] if begun < -1 else marks
