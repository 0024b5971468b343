"""Making an evaluation, starting the keeper that carries it out, and stopping it."""

import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from engine.gpu_owners import EVALUATION_MARKER
from engine.keeper import client
from engine.launch.model import check_model, model_hash
from lora.adapters.registry import adapter_folder, require_unchanged
from lora.evaluations.evaluation import EvaluationSettings, Measured, settings_json
from lora.evaluations.own_data import OwnData
from lora.process.asking import absolute_model
from lora.process.process_life import PROGRESS, Life
from lora.process.training_python import TrainingPython
from lora.process.work import start_keeper_of, stop_work
from lora.records import LoraError
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.evaluation_job import EvaluationJobRecord
from store.location import database_file
from store.records import AdapterRecord

FOLDER = "evaluations"
SCRIPT, LOG = "llmtune_evaluate.py", "evaluation.log"
# What is measured is in the file: there is nothing to end in good order but a process on a GPU.
STOP_WITHIN_S = 30.0


class BasisChanged(LoraError):
    """The adapter, its base or the data is not what the evaluation began with."""


def create_evaluation(
    data_dir: Path,
    adapter: AdapterRecord,
    base: str,
    data: OwnData,
    python: TrainingPython,
    settings: EvaluationSettings,
) -> int:
    """Write a new evaluation in state `waiting` and return its number. Nothing is started. Raises LoraError (the
    adapter's files are not those that were registered), ModelUnfit, StoreError."""
    assert adapter.id is not None
    require_unchanged(data_dir, adapter)
    check_model(base)
    base = absolute_model(base)
    path = data.path.absolute()
    with open_writer(database_file(data_dir)) as writer, writer.transaction():
        number = writer.next_evaluation()
        writer.insert(
            EvaluationJobRecord(
                id=number,
                adapter_id=adapter.id,
                name=adapter.label,
                state="waiting",
                base_model=base,
                data=data.what,
                data_path=str(path.relative_to(data_dir.absolute()) if _within(path, data_dir) else path),
                data_hash=data.data_hash,
                path=f"{FOLDER}/{number}-{adapter.name}-{adapter.version}",
                marker=f"{EVALUATION_MARKER}{uuid.uuid4().hex}",
                created_at=utc_now(),
                dataset_id=data.dataset_id,
                base_hash=model_hash(base),
                settings=settings_json(settings, data.examples),
                python=python.python,
                raw={"python": asdict(python)},
            )
        )
    return number


def start_evaluation(data_dir: Path, number: int, environ: Mapping[str, str] = os.environ) -> int:
    """Start the keeper of one that was just made, or that stopped, failed or lost its keeper; its pid. What was
    measured stays, and a process that went on alone is followed. Raises EngineError: done already, has a keeper,
    another adapter, base or data than it began with, a keeper that did not start; StoreError."""
    with open_reader(database_file(data_dir)) as reader:
        job = reader.evaluation_job(number)
        adapter = reader.adapter(job.name)
    if job.state == "done":
        raise LoraError(f"evaluation {number} of {job.name} is done: `llmtune lora attach eval:{number}` shows it")
    if client.is_running(data_dir, "evaluation", number):
        raise LoraError(f"evaluation {number} has a keeper already")
    if Life.left(job) is None:  # else it computes: nothing is read anew
        require_unchanged(data_dir, adapter)
        _require_unchanged(data_dir, job)
    return start_keeper_of(data_dir, "evaluation", number, environ)


def stop_evaluation(data_dir: Path, number: int) -> str:
    """Have it stopped, as `lora.process.work.stop_work` says."""
    return stop_work(data_dir, "evaluation", number)


def evaluation_folder(data_dir: Path, job: EvaluationJobRecord) -> Path:
    """What it has told so far, and its log. The store holds the path within the data directory."""
    return data_dir / job.path


def python_of(job: EvaluationJobRecord) -> TrainingPython:
    return TrainingPython(**job.raw["python"])


def job_of(data_dir: Path, job: EvaluationJobRecord, adapter: AdapterRecord, measured: Measured) -> dict[str, Any]:
    """What the script is told."""
    return {
        **job.settings,
        "model": job.base_model,
        "adapter": str(adapter_folder(data_dir, adapter)),
        "examples": str(data_dir / job.data_path),
        "progress": str(evaluation_folder(data_dir, job) / PROGRESS),
        "seconds_before": measured.seconds or 0.0,
        "measured": measured.known(),
    }


def _within(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder.absolute())


def _require_unchanged(data_dir: Path, job: EvaluationJobRecord) -> None:
    path = data_dir / job.data_path
    try:
        same = sha256(path.read_bytes()).hexdigest() == job.data_hash
    except OSError as error:
        raise BasisChanged(f"{job.data} cannot be read ({path}: {error.strerror}): evaluate {job.name} anew") from None
    if not same:
        raise BasisChanged(f"{job.data} has changed since evaluation {job.id} began ({path}): evaluate {job.name} anew")
    now = model_hash(job.base_model)
    if job.base_hash is not None and now != job.base_hash:
        raise BasisChanged(
            f"the base {job.base_model} is {'gone' if now is None else 'not what it was'} since evaluation {job.id} "
            f"began: put it back, or evaluate {job.name} anew"
        )
