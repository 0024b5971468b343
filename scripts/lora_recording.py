"""A data directory as a recorded training left it, set back to one of its steps, for the README's picture of LoRA.

SmolLM2-135M, NF4 with LoRA on q_proj and v_proj, on the 175 seed tasks of self-instruct, on two busy cores; and the
adapter of its checkpoint of step 20, imported. The rows are as the store had them, with other paths.
"""

import json
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from store.clock import format_utc, parse_utc
from store.database import open_writer
from store.location import database_file
from store.records import AdapterRecord, DatasetRecord, EvaluationRecord, EventRecord, TrainingRecord
from store.writer import Writer

RECORDED = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "lora-cpu"
UNDER_WAY = 1
"""The training that has not ended in the picture."""
AT_STEP = 27
TABLES = {
    "datasets": DatasetRecord,
    "trainings": TrainingRecord,
    "adapters": AdapterRecord,
    "evaluations": EvaluationRecord,
    "events": EventRecord,
}


def make_trainings(data_dir: Path) -> str:
    """Fill `data_dir`; the UTC time at which step AT_STEP of the training had just been made."""
    rows = json.loads((RECORDED / "rows.json").read_text(encoding="utf-8"))
    told = [json.loads(line) for line in (RECORDED / "progress.jsonl").read_text(encoding="utf-8").splitlines()]
    at = next(index for index, line in enumerate(told) if line["kind"] == "step" and line["step"] == AT_STEP)
    training = next(row for row in rows["trainings"] if row["id"] == UNDER_WAY)
    now = format_utc(_after(training["started_at"], told, at))
    training |= {"state": "running", "finished_at": None, "step": AT_STEP, "message": None}
    training |= {key: told[at][key] for key in ("loss", "seconds")}
    rows["events"] = [row for row in rows["events"] if row["at"] <= now]
    data_dir.mkdir(parents=True, exist_ok=True)
    with open_writer(database_file(data_dir)) as writer:
        for table, record_type in TABLES.items():
            for row in rows[table]:
                _insert(writer, record_type, row)
    folder = data_dir / training["path"]
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in told[: at + 1]))
    return now


def _after(began: str, told: list[dict[str, Any]], at: int) -> datetime:
    return parse_utc(began) + timedelta(seconds=told[at]["seconds"])


def _insert(writer: Writer, record_type: Any, row: dict[str, Any]) -> None:
    known = {field.name for field in fields(record_type)} - {"id"}  # counted anew, from 1
    writer.insert(record_type(**{key: value for key, value in row.items() if key in known}))
