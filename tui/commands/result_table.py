"""A session's results as a table for the terminal: one a workload, one line a candidate."""

from typing import TYPE_CHECKING

from engine.text import clean
from store.clock import utc_now
from store.records import SessionRecord
from tui.metric_text import effect_text, metric_name, metric_value, money
from tui.output import columns
from tuning.figures import duration_text
from tuning.judged import WorkloadJudgement
from tuning.judgement.verdict_words import verdict_text
from tuning.limited_by import agreed
from tuning.records import CandidateResult, SessionResult
from tuning.results import session_result
from tuning.scheduling.schedule import BASELINE

if TYPE_CHECKING:
    from store.reader import Reader

BESIDE = ("mean_ttft_ms", "p99_ttft_ms", "mean_itl_ms")


def result_of(reader: "Reader", session: SessionRecord) -> SessionResult:
    """The session's results as they stand."""
    assert session.id is not None
    return session_result(session, reader.launches(session.id), reader.runs(session.id), utc_now())


def result_lines(result: SessionResult) -> list[str]:
    """All tables, with what the session says in one sentence above them, and how far it is."""
    spent = f", {money(result.money_used)}" if result.money_used is not None else ""
    lines = [
        f"session {result.session_id} “{clean(result.name, 80)}” {result.state}: "
        f"{result.launches_done} of {result.launches_planned} launches in {result.blocks_done} of "
        f"{result.blocks_planned} blocks, {duration_text(result.seconds_used)}{spent}"
    ]
    if result.judgement is not None and result.judgement.sentence:
        lines.append(clean(result.judgement.sentence))
    for workload in dict.fromkeys(row.workload for row in result.results):
        lines += ["", *workload_lines(result, workload)]
    return lines


def workload_lines(result: SessionResult, workload: str) -> list[str]:
    """One workload's table: the deciding metric with its t interval over launches, then what stands beside it."""
    metric = result.metric.get(workload, "total_tok_per_s")
    rows = [row for row in result.results if row.workload == workload]
    beside = [name for name in BESIDE if name != metric]
    limited = ["limited by"] if any(row.limited_by for row in rows) else []
    judged = result.judgement.workloads.get(workload) if result.judgement is not None else None
    verdict = ["verdict"] if judged is not None else []
    header = [
        "",
        clean(workload, 40),
        "n",
        metric_name(metric),
        "interval",
        "vs default",
        *verdict,
        *map(metric_name, beside),
        *limited,
        "",
    ]
    table = [
        [
            *_cells(row, metric),
            *(_verdict(row, one) for one in (judged,) if one is not None),
            *(_mean(row, name) for name in beside),
            *(clean(agreed(row.limited_by), 60) for _ in limited),
            _remark(row),
        ]
        for row in rows
    ]
    first = 6 + len(verdict)
    return columns(header, table, right=frozenset({0, 2, 3, *range(first, first + len(beside))}))


def _cells(row: CandidateResult, metric: str) -> list[str]:
    summary = row.summaries.get(metric)
    number, label = str(row.candidate.index), clean(row.candidate.label, 40)
    if summary is None:
        return [number, label, "0", metric_value(metric, None), "", ""]
    interval = ""
    if summary.low is not None and summary.high is not None:
        interval = f"{metric_value(metric, summary.low)} to {metric_value(metric, summary.high)}"
    versus = "baseline" if row.candidate.index == 0 else effect_text(row.effects.get(metric))
    return [number, label, str(summary.n), metric_value(metric, summary.mean), interval, versus]


def _verdict(row: CandidateResult, judged: WorkloadJudgement) -> str:
    if row.candidate.index == BASELINE:
        return ""
    return verdict_text(judged.candidates.get(row.candidate.index), judged.rules, judged.blocks)


def _mean(row: CandidateResult, metric: str) -> str:
    summary = row.summaries.get(metric)
    return metric_value(metric, summary.mean if summary else None)


def _remark(row: CandidateResult) -> str:
    """Why there is less than planned."""
    parts = [clean(failure, 100) for failure in row.failures[-1:]]
    if row.rejected:
        parts.append(f"{row.rejected} rejected")
    return "; ".join(parts)
