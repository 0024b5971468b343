"""The table of a session's candidates, as columns and cells. Pure; no widgets here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from engine.text import clean
from tui.format import ABSENT
from tui.metric_text import effect_text, higher_is_better, metric_name, metric_value
from tui.plan_form import DEFAULT
from tui.tune_view import LIVE_STATES, TuneView, setting_flags, short_flag
from tuning.grid import shown_setting
from tuning.records import Candidate, CandidateResult

VERDICT_GLYPHS = {
    "better": "✓ better",
    "worse": "✗ worse",
    "equivalent": "≈ equivalent",
    "undecided": "? undecided",
    "infeasible": "✗ infeasible",
    "failed": "! failed",
    "dropped": "– dropped",
}
WIDE_METRICS = ("mean_ttft_ms", "mean_itl_ms", "p99_itl_ms", "kv_peak_perc", "preemptions")
LOWER_IS_BETTER = frozenset({"error_rate", "preemptions", "requests_failed", "energy_j_per_token", "duration_s"})


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    title: str
    right: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate: its index, and a cell of the table for each column."""

    candidate: int
    cells: tuple[Text, ...]


def columns(candidates: Sequence[Candidate], metric: str, *, wide: bool) -> tuple[Column, ...]:
    """The table's columns; a wide table has more metrics between the deciding one and the state."""
    settings = tuple(Column(f"set:{flag}", short_flag(flag)) for flag in setting_flags(candidates))
    tail = [Column("metric", metric_name(metric)), Column("effect", "vs default", right=False)]
    others = ["p99_ttft_ms", *(WIDE_METRICS if wide else ())]
    tail += [Column(f"m:{name}", metric_name(name)) for name in others if name != metric]
    first = settings or (Column("label", "candidate", right=False),)
    return (*first, Column("n", "n"), *tail, Column("state", "state", right=False))


def rows(view: TuneView, workload: str, metric: str, *, wide: bool) -> tuple[Row, ...]:
    """One row a candidate, in the order of its index, for one workload."""
    shown = columns(view.candidates, metric, wide=wide)
    return tuple(
        Row(one.candidate.index, tuple(_cell(view, one, column, metric) for column in shown))
        for one in sorted(view.result.results, key=lambda one: one.candidate.index)
        if one.workload == workload
    )


def setting_text(candidate: Candidate, flag: str, baseline: Mapping[str, Any]) -> str:
    """A candidate's value for a flag; where it sets none, the baseline's own, or the server's default."""
    if flag in candidate.settings:
        return clean(shown_setting(flag, candidate.settings[flag]), 16)
    return clean(shown_setting(flag, baseline[flag]), 16) if flag in baseline else DEFAULT


def state_text(view: TuneView, one: CandidateResult) -> Text:
    """Where a candidate stands, as a glyph with a word; the verdict once there is one."""
    index, workload = one.candidate.index, one.workload
    effect = one.effects.get(view.result.metric.get(workload, ""))
    summary = one.summaries.get(view.result.metric.get(workload, ""))
    measured = summary.n if summary else 0
    rejected = f", {one.rejected} rejected" if one.rejected else ""
    launch = view.launch
    if launch is not None and launch.candidate == index and view.session.state == "running" and view.keeper_alive:
        return Text("▶ measuring" if launch.state == "ready" else "▶ starting", style="bold")
    if index == 0:
        return Text("baseline")
    if effect is not None and effect.verdict:
        return Text(_verdict(effect.verdict, effect.more_blocks) + rejected)
    if any(index == candidate for candidate, _ in view.foregone):
        return Text("– not tried", style="dim")
    if index in view.dropped:
        return Text("– dropped", style="dim")
    if one.failures and not measured:
        return Text("! no start", style="bold")
    if not measured:
        still = "waiting" if view.session.state in LIVE_STATES else "not measured"
        return Text(f"· {still}{rejected}", style="dim")
    return Text(f"· {rejected.removeprefix(', ') or 'measured'}")


def table_title(view: TuneView, workload: str, metric: str) -> str:
    """Which workload and metric a table shows, and whether that metric decides."""
    names = view.workloads
    place = f" ({names.index(workload) + 1} of {len(names)}, w next)" if workload in names and len(names) > 1 else ""
    decides = view.result.metric.get(workload) == metric
    role = "decides" if decides else "does not decide"
    return f"── {clean(workload, 24)}{place} · {metric_name(metric)}{_direction(metric)}, {role}"


def _verdict(verdict: str, more_blocks: int | None) -> str:
    if verdict == "undecided" and more_blocks:
        return f"? {more_blocks} more"
    return VERDICT_GLYPHS.get(verdict, clean(verdict, 16))


def _cell(view: TuneView, one: CandidateResult, column: Column, metric: str) -> Text:
    kind, _, name = column.key.partition(":")
    if kind == "state":
        return state_text(view, one)
    if kind == "set":
        baseline: Mapping[str, Any] = view.plan.server if view.plan else {}
        words = setting_text(one.candidate, name, baseline)
    elif kind == "label":
        words = DEFAULT if one.candidate.index == 0 else clean(one.candidate.label, 24)
    elif kind == "n":
        summary = one.summaries.get(metric)
        words = str(summary.n) if summary and summary.n else ABSENT
    elif kind == "effect":
        words = "" if one.candidate.index == 0 else effect_text(one.effects.get(metric))
    else:
        wanted = metric if kind == "metric" else name
        summary = one.summaries.get(wanted)
        words = metric_value(wanted, summary.mean if summary else None)
    return Text(words, no_wrap=True)


def _direction(metric: str) -> str:
    if higher_is_better(metric):
        return ", higher is better"
    return ", lower is better" if metric.endswith("_ms") or metric in LOWER_IS_BETTER else ""
