"""`llmtune lora list`: the registry, the trainings and datasets that it comes from, and what was evaluated."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.process.work import Work
from store.errors import NotFound
from store.evaluation_job import EvaluationJobRecord
from store.records import AdapterRecord, DatasetRecord, TrainingRecord
from tui.commands.lora_eval_text import job_json
from tui.commands.lora_meant import word_of
from tui.commands.lora_text import adapter_json
from tui.commands.places import data_place, reading
from tui.format import called, local_minute, number
from tui.lora.examined import megabytes, parameters_text
from tui.lora.held import held_by
from tui.output import columns, say, say_json

DONE = 0
_NAME_W = 40


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    adapters: list[AdapterRecord] = []
    trainings: list[TrainingRecord] = []
    datasets: list[DatasetRecord] = []
    evaluations: list[EvaluationJobRecord] = []
    try:
        with reading(place) as reader:
            adapters, trainings, datasets = reader.adapters(), reader.trainings(), reader.datasets()
            evaluations = reader.evaluation_jobs()
    except NotFound:
        pass  # nothing was recorded yet
    if args.json:
        say_json(
            {
                "adapters": [adapter_json(adapter, place) for adapter in adapters],
                "trainings": [_training_json(training, place) for training in trainings],
                "datasets": [_dataset_json(dataset, place) for dataset in datasets],
                "evaluations": [job_json(job) for job in evaluations],
            }
        )
        return DONE
    tables = [_adapters(adapters), _trainings(trainings, place), _evaluations(evaluations, place), _datasets(datasets)]
    if not any(tables):
        say(
            "there is no adapter yet: llmtune lora prepare FILE makes data ready for one, llmtune lora import keeps one"
        )
    for index, table in enumerate(table for table in tables if table):
        if index:
            say()
        for line in table:
            say(line)
    return DONE


def _adapters(adapters: Sequence[AdapterRecord]) -> list[str]:
    header = ["adapter", "base", "settings", "validation loss", "size", "made"]
    rows = [
        [
            clean(adapter.label, 80),
            called(clean(adapter.base_model), _NAME_W),
            parameters_text(adapter.parameters),
            number(_loss(adapter.losses), 4),
            megabytes(adapter.size_bytes),
            local_minute(adapter.created_at),
        ]
        for adapter in sorted(adapters, key=lambda adapter: (adapter.name, adapter.version))
    ]
    return columns(header, rows, frozenset({3, 4})) if rows else []


def _trainings(trainings: Sequence[TrainingRecord], place: Path) -> list[str]:
    header = ["training", "name", "state", "step", "loss", "base", "began"]
    rows = [
        [
            str(training.id),
            clean(training.name, _NAME_W),
            _state(training, place),
            f"{number(training.step)}/{number(training.steps)}",
            number(training.loss, 4),
            called(clean(training.base_model), _NAME_W),
            local_minute(training.started_at or training.created_at),
        ]
        for training in trainings
    ]
    return columns(header, rows, frozenset({0, 3, 4})) if rows else []


def _evaluations(jobs: Sequence[EvaluationJobRecord], place: Path) -> list[str]:
    header = ["evaluation", "adapter", "state", "records", "data", "began"]
    rows = [
        [
            word_of("evaluation", job.id),
            clean(job.name, 80),
            _state(job, place),
            f"{number(job.done)}/{number(job.records)}",
            called(clean(job.data), _NAME_W),
            local_minute(job.started_at or job.created_at),
        ]
        for job in jobs
    ]
    return columns(header, rows, frozenset({3})) if rows else []


def _state(work: Work, place: Path) -> str:
    """As the row has it; of one that nobody keeps, whether it computes on."""
    if work.state != "running" or (held := held_by(place, work)) == "kept":
        return work.state
    return "computes on" if held == "alone" else "interrupted"


def _datasets(datasets: Sequence[DatasetRecord]) -> list[str]:
    header = ["dataset", "name", "train", "validation", "tokens", "made"]
    rows = [
        [
            str(dataset.id),
            clean(dataset.name, _NAME_W),
            number(dataset.train_examples),
            number(dataset.validation_examples),
            number(dataset.train_tokens),
            local_minute(dataset.created_at),
        ]
        for dataset in datasets
    ]
    return columns(header, rows, frozenset({0, 2, 3, 4})) if rows else []


def _loss(losses: dict[str, Any]) -> float | None:
    found = losses.get("validation")
    return float(found) if isinstance(found, int | float) else None


def _training_json(training: TrainingRecord, place: Path) -> dict[str, Any]:
    keys = (
        "id", "name", "state", "base_model", "dataset_id", "settings", "seed", "adapter_name", "step", "steps", "loss",
        "eval_loss", "seconds", "created_at", "started_at", "finished_at", "message",
    )  # fmt: skip
    return {key: getattr(training, key) for key in keys} | {"path": str(place / training.path)}


def _dataset_json(dataset: DatasetRecord, place: Path) -> dict[str, Any]:
    keys = (
        "id", "name", "data_hash", "train_examples", "validation_examples", "seed", "created_at", "sources", "model",
        "max_length", "train_tokens", "validation_tokens",
    )  # fmt: skip
    return {key: getattr(dataset, key) for key in keys} | {"path": str(place / dataset.path)}
