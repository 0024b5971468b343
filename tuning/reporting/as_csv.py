"""A session as CSV: a row for each run, with every metric."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from engine.text import clean
from store.records import RunRecord, SessionRecord
from tuning.plans.plan_json import candidates_from_json
from tuning.records import RUN_METRICS

_RUN_COLUMNS = ("block", "candidate", "slot", "workload", "kind", "repeat", "seed", "state")


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


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = clean(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
