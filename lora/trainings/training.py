"""Making a training, starting the keeper that carries it out, and stopping it."""

import hashlib
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from engine.gpu_owners import TRAINING_MARKER
from engine.keeper import client
from engine.launch.model import check_model, model_hash
from engine.processes.process import is_alive
from lora.adapters.registry import check_name, name_from
from lora.data.writing import TRAIN, VALIDATION
from lora.process.process_life import recorded
from lora.process.training_python import TrainingPython
from lora.process.work import start_keeper_of, stop_work
from lora.records import LoraError, TrainingSettings
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import DatasetRecord, TrainingRecord

FOLDER = "trainings"


class DataChanged(LoraError):
    """The data set or the base is not what the training was made for."""


def create_training(
    data_dir: Path,
    dataset: DatasetRecord,
    settings: TrainingSettings,
    python: TrainingPython,
    *,
    name: str | None = None,
) -> int:
    """Write a new training in state `waiting` and return its id. Nothing is started. Its adapter is registered as
    `name`, of the base and the data set where not given. Raises LoraError, ModelUnfit, StoreError."""
    assert dataset.id is not None
    settings = replace(settings, base_model=absolute_model(settings.base_model), dataset_id=dataset.id)
    refuse_settings(settings)
    check_model(settings.base_model)
    _require_data(data_dir, dataset)
    called = check_name(name_from(f"{Path(settings.base_model).name}-{dataset.name}") if name is None else name)
    with open_writer(database_file(data_dir)) as writer, writer.transaction():
        record = TrainingRecord(
            name=called,
            state="waiting",
            base_model=settings.base_model,
            dataset_id=dataset.id,
            settings=asdict(settings),
            seed=settings.seed,
            path="",
            marker=f"{TRAINING_MARKER}{uuid.uuid4().hex}",
            created_at=utc_now(),
            adapter_name=called,
            base_hash=model_hash(settings.base_model),
            data_hash=dataset.data_hash,
            python=python.python,
            steps=settings.steps,
            raw={"python": asdict(python)},
        )
        number = writer.insert(record)
        writer.update(TrainingRecord, number, path=f"{FOLDER}/{number}-{called}")
    return number


def start_keeper(data_dir: Path, training_id: int, environ: Mapping[str, str] = os.environ) -> int:
    """Start the keeper of a training that was just made, or that stopped or failed; its pid. It first ends what its
    predecessor left, but for a trainer that went on alone: that is kept. Raises EngineError: done already, has a
    keeper, other data or another base than it began with, a keeper that did not start; StoreError."""
    with open_reader(database_file(data_dir)) as reader:
        training = reader.training(training_id)
        dataset = reader.dataset(training.dataset_id)
    if training.state == "done":
        raise LoraError(f"training {training_id} is done: its adapter is {training.adapter_name}")
    _require_unchanged(data_dir, training, dataset)
    return start_keeper_of(data_dir, "training", training_id, environ)


def stop_training(data_dir: Path, training_id: int) -> str:
    """Have a training stopped, as `lora.process.work.stop_work` says."""
    return stop_work(data_dir, "training", training_id)


def settings_of(training: TrainingRecord) -> TrainingSettings:
    """The settings of a training, those of an earlier program too: what that did not know has its default."""
    known = {field.name for field in fields(TrainingSettings)}
    kept = {name: value for name, value in training.settings.items() if name in known}
    if isinstance(kept.get("targets"), list):
        kept["targets"] = tuple(kept["targets"])
    return TrainingSettings(**kept)


def python_of(training: TrainingRecord) -> TrainingPython:
    return TrainingPython(**training.raw["python"])


def training_folder(data_dir: Path, training: TrainingRecord) -> Path:
    """Its checkpoints, progress and log. The store holds the path within the data directory."""
    return data_dir / training.path


def dataset_folder(data_dir: Path, dataset: DatasetRecord) -> Path:
    return data_dir / dataset.path


def absolute_model(model: str) -> str:
    """A folder's absolute path; a hub name as it is."""
    path = Path(model).expanduser()
    return os.path.abspath(path) if path.exists() else model


def refuse_settings(settings: TrainingSettings) -> None:
    """Raises LoraError for what no training takes."""
    if (settings.epochs is None) == (settings.steps is None):
        raise LoraError("give either --epochs or --steps")
    wrong: dict[str, Any] = {
        "--r": settings.r < 1,
        "--alpha": not settings.alpha > 0,
        "--dropout": not 0 <= settings.dropout < 1,
        "--learning-rate": not settings.learning_rate > 0,
        "--batch": settings.batch < 1,
        "--accumulation": settings.accumulation < 1,
        "--epochs": settings.epochs is not None and not settings.epochs > 0,
        "--steps": settings.steps is not None and settings.steps < 1,
        "--max-length": settings.max_length < 2,
        "--warmup": not 0 <= settings.warmup <= 1,
        "--eval-every": settings.eval_every is not None and settings.eval_every < 1,
        "--save-every": settings.save_every is not None and settings.save_every < 1,
        "--seed": not 0 <= settings.seed < 2**32,
        "--targets": not settings.targets,
    }
    for option, is_wrong in wrong.items():
        if is_wrong:
            raise LoraError(f"{option} cannot be so: see `llmtune lora train --help` for what it takes")


def _require_data(data_dir: Path, dataset: DatasetRecord) -> None:
    """Raises DataChanged where the files of a data set are not those that were prepared."""
    folder = dataset_folder(data_dir, dataset)
    lines = []
    for name in (TRAIN, VALIDATION):  # as lora.data.writing.data_hash
        try:
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError as error:
            raise DataChanged(
                f"dataset {dataset.id} cannot be read ({folder / name}: {error.strerror}): prepare it again"
            ) from None
        lines.append(f"{digest}  {name}\n")
    if hashlib.sha256("".join(lines).encode()).hexdigest() != dataset.data_hash:
        raise DataChanged(f"dataset {dataset.id} has changed since it was prepared ({folder}): prepare it again")


def _require_unchanged(data_dir: Path, training: TrainingRecord, dataset: DatasetRecord) -> None:
    if training.id is not None and client.is_running(data_dir, "training", training.id):
        raise LoraError(f"training {training.id} has a keeper already")
    if training.state != "done" and (identity := recorded(training)) is not None and is_alive(identity):
        return  # it computes: nothing is read anew
    _require_data(data_dir, dataset)
    now = model_hash(training.base_model)
    if training.base_hash is not None and now != training.base_hash:
        raise DataChanged(
            f"the base {training.base_model} is {'gone' if now is None else 'not what it was'} since training "
            f"{training.id} began: put it back, or start a new training"
        )
