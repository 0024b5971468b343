"""What is said of imported files, for programs."""

from dataclasses import asdict
from typing import Any

from tuning.imported.records import Comparison, Configuration, ImportedRun, ImportReport, Refused
from tuning.reporting.values import json_ready


def to_json(report: ImportReport, with_raw: bool = False) -> dict[str, Any]:
    """The report as JSON types throughout; `with_raw` adds each run's whole result."""
    document = {
        "files": report.files,
        "runs": report.runs,
        "kept": report.kept,
        "repeated": report.repeated,
        "left_alone": report.left_alone,
        "refused": [_refused_json(each) for each in report.refused],
        "failures": [_refused_json(each) for each in report.failures],
        "notes": list(report.notes),
        "told_by": list(report.told_by),
        "workloads": [
            {
                "label": load.label,
                "configurations": [_configuration_json(each, with_raw) for each in load.configurations],
                "comparisons": [_comparison_json(each) for each in load.comparisons],
                "repeats": [asdict(each) for each in load.repeats],
            }
            for load in report.loads
        ],
    }
    cleaned: dict[str, Any] = json_ready(document)
    return cleaned


def _refused_json(each: Refused) -> dict[str, str]:
    return {"path": each.path, "reason": each.reason}


def _configuration_json(each: Configuration, with_raw: bool) -> dict[str, Any]:
    return {
        "label": each.label,
        "model": each.runs[0].model if each.runs else None,
        "runs_counted": each.counted,
        "units": len(each.units),
        "basis": each.basis,
        "span_s": each.span_s,
        "metrics": {
            metric: {
                "n": found.units,
                "runs": found.runs,
                "mean": found.mean,
                "low": found.low,
                "high": found.high,
                "basis": found.basis,
            }
            for metric, found in each.figures.items()
        },
        "runs": [_run_json(run, with_raw) for run in each.runs],
    }


def _run_json(run: ImportedRun, with_raw: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": run.place.path,
        "number": run.place.number,
        "launch": run.launch,
        "stretch": run.stretch,
        "started": run.started.isoformat() if run.started else None,
        "ended": run.ended.isoformat() if run.ended else None,
        "counts": run.counts,
        "rejected": run.rejected,
        "notes": list(run.notes),
        "facts": run.facts,
        "metrics": run.metrics,
    }
    return {**found, "raw": run.raw} if with_raw else found


def _comparison_json(each: Comparison) -> dict[str, Any]:
    return {
        "metric": each.metric,
        "configuration": each.label,
        "against": each.against,
        "effect": each.effect,
        "low": each.low,
        "high": each.high,
        "verdict": each.verdict,
        "text": each.text,
    }
