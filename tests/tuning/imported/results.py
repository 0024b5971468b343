"""Results as `vllm bench serve` writes them, made up with figures that agree with each other."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tuning.imported.analysis import analyse
from tuning.imported.records import Configuration, FileResults, ImportedRun, ImportReport, Place
from tuning.imported.runs import imported_run

BENCH = Path(__file__).parents[2] / "fixtures" / "h200-vllm-0.25.1" / "bench"
BEGIN = datetime(2026, 10, 14, 9, 0, 0)


def a_result(at: float = 0.0, speed: float = 1.0, **changes: Any) -> dict[str, Any]:
    """A run of 100 requests of 512 and 128 tokens that ends `at` seconds after 9:00; 10 s long at `speed` 1."""
    completed = changes.get("completed", 100)
    duration = changes.get("duration", 10.0 / speed)
    per_second = 1 / duration if duration else 0.0
    result = {
        "date": (BEGIN + timedelta(seconds=at)).strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "org/model",
        "tokenizer_id": "org/model",
        "num_prompts": 100,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 16,
        "duration": duration,
        "completed": completed,
        "failed": 100 - completed,
        "total_input_tokens": 512 * completed,
        "total_output_tokens": 128 * completed,
        "request_throughput": completed * per_second,
        "request_goodput": None,
        "output_throughput": 128 * completed * per_second,
        "total_token_throughput": 640 * completed * per_second,
        "mean_ttft_ms": 400.0 / speed,
        "median_ttft_ms": 390.0 / speed,
        "p99_ttft_ms": 700.0 / speed,
        "mean_tpot_ms": 8.0 / speed,
        "median_tpot_ms": 7.9 / speed,
        "p99_tpot_ms": 9.0 / speed,
        "mean_itl_ms": 8.0 / speed,
        "median_itl_ms": 6.0 / speed,
        "p99_itl_ms": 100.0 / speed,
    }
    return {**result, **changes}


def a_run(raw: dict[str, Any] | None = None, path: str = "a.json", **name: str) -> ImportedRun:
    return imported_run(raw if raw is not None else a_result(), Place(path, 0), name)


def a_file(path: str, *results: dict[str, Any]) -> FileResults:
    return FileResults(path, 1000, f"hash of {path}", results)


def report_on(files: dict[str, list[dict[str, Any]]], **options: Any) -> ImportReport:
    """The report on results by path."""
    return analyse([a_file(path, *results) for path, results in files.items()], **options)


def by_label(report: ImportReport) -> dict[str, Configuration]:
    """The configurations of the only workload."""
    (load,) = report.loads
    return {each.label: each for each in load.configurations}
