"""The table of a session's candidates, as columns and cells. Pure; no widgets here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from engine.text import clean
from tui.format import ABSENT
from tui.metric_text import effect_text, higher_is_better, metric_name, metric_value
from tui.tune.grid_text import DEFAULT
from tui.tune.tune_view import LIVE_STATES, TuneView, setting_flags, short_flag
from tui.tune.verdict_cells import judged_candidate, limits_word, verdict_words
from tuning.judged import Limit
from tuning.plans.grid import shown_setting
from tuning.records import Candidate, CandidateResult

WIDE_METRICS = ("mean_ttft_ms", "mean_itl_ms", "p99_itl_ms", "kv_peak_perc", "preemptions")
WIDE_FROM = 120
"""Cells from which a table has the further metrics."""
_LEAST = {"n": 2, "metric": 11, "effect": 19, "state": 13, "m": 8, "set": 4, "label": 8, "limits": 8}
_STYLES = {"✓": "bold green", "✗": "red", "⊘": "red", "!": "bold", "–": "dim"}
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


@dataclass(frozen=True, slots=True)
class Table:
    """What a table of this width holds; `widths` are of its columns, with the blank before each."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    widths: tuple[int, ...]


def table(view: TuneView, workload: str, metric: str, width: int) -> Table:
    """One row a candidate, in the order of its index, for one workload.

    A wide table has more metrics between the deciding one and the verdict. What does not fit is left out: words first,
    then metrics, then how the limits stand; settings and the verdict stay.
    """
    shown = columns(view, workload, metric, wide=width >= WIDE_FROM)
    made = _made(view, workload, metric, shown, short=False)
    if sum(made.widths) > width:
        made = _made(view, workload, metric, shown, short=True)
    while sum(made.widths) > width:
        at = _least_needed(shown)
        if at is None:
            break
        shown = (*shown[:at], *shown[at + 1 :])
        made = _made(view, workload, metric, shown, short=True)
    return made


def columns(view: TuneView, workload: str, metric: str, *, wide: bool) -> tuple[Column, ...]:
    """All columns that there are to show."""
    settings = tuple(Column(f"set:{flag}", short_flag(flag)) for flag in setting_flags(view.candidates))
    tail = [Column("metric", metric_name(metric)), Column("effect", "vs default", right=False)]
    limited = [limit.metric for limit in _limits(view) if limit.workload in (None, workload)]
    others = dict.fromkeys([*limited, "p99_ttft_ms", *(WIDE_METRICS if wide else ())])
    known = {name for one in view.result.results for name in one.summaries if one.workload == workload}
    tail += [Column(f"m:{name}", metric_name(name)) for name in others if name != metric and name in known]
    if _limits(view):
        tail.append(Column("limits", "limits", right=False))
    first = settings or (Column("label", "candidate", right=False),)
    return (*first, Column("n", "n"), *tail, Column("state", "verdict", right=False))


def _limits(view: TuneView) -> Sequence[Limit]:
    judgement = view.result.judgement
    return () if judgement is None else judgement.deciding.limits


def _made(view: TuneView, workload: str, metric: str, shown: tuple[Column, ...], *, short: bool) -> Table:
    rows = tuple(
        Row(one.candidate.index, tuple(_cell(view, one, column, metric, short=short) for column in shown))
        for one in sorted(view.result.results, key=lambda one: one.candidate.index)
        if one.workload == workload
    )
    return Table(shown, rows, tuple(_width(column, at, rows) for at, column in enumerate(shown)))


def _least_needed(shown: Sequence[Column]) -> int | None:
    """The place of the column to leave out next."""
    for kind in ("m:", "limits"):
        places = [at for at, column in enumerate(shown) if column.key.startswith(kind)]
        if places:
            return places[-1]
    return None


def _width(column: Column, at: int, rows: Sequence[Row]) -> int:
    """Wide enough for the title, the usual content and what stands there now, and one blank before it."""
    content = max((row.cells[at].cell_len for row in rows), default=0)
    return 1 + max(len(column.title), content, _LEAST.get(column.key.partition(":")[0], 0))


def setting_text(candidate: Candidate, flag: str, baseline: Mapping[str, Any]) -> str:
    """A candidate's value for a flag; where it sets none, the baseline's own, or the server's default."""
    if flag in candidate.settings:
        return clean(shown_setting(flag, candidate.settings[flag]), 16)
    return clean(shown_setting(flag, baseline[flag]), 16) if flag in baseline else DEFAULT


def state_text(view: TuneView, one: CandidateResult, *, short: bool = False) -> Text:
    """Where a candidate stands, as a glyph with a word: what it does now, else its verdict, else why it has none."""
    index, workload = one.candidate.index, one.workload
    summary = one.summaries.get(view.result.metric.get(workload, ""))
    measured = summary.n if summary else 0
    rejected = f", {one.rejected} rejected" if one.rejected else ""
    launch = view.launch
    if launch is not None and launch.candidate == index and view.session.state == "running" and view.keeper_alive:
        return Text("▶ measuring" if launch.state == "ready" else "▶ starting", style="bold")
    if index == 0:
        return Text("baseline")
    if any(index == candidate for candidate, _ in view.foregone):
        return Text("– not tried", style="dim")
    words = verdict_words(view, workload, index, short=short)
    if words:
        return Text(words, style=_STYLES.get(words[0], ""))
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


def _cell(view: TuneView, one: CandidateResult, column: Column, metric: str, *, short: bool) -> Text:
    kind, _, name = column.key.partition(":")
    if kind == "state":
        return state_text(view, one, short=short)
    if kind == "limits":
        return Text(limits_word(judged_candidate(view, one.workload, one.candidate.index)), no_wrap=True)
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
