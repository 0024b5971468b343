"""`llmtune lora train DATASET --model MODEL`: what a training comes to, then the training."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.hand_servers import stop_server
from engine.launch.model import check_model
from engine.records import ModelUnfit
from engine.text import clean
from lora.adapters.registry import check_name, name_from
from lora.process.training_python import training_python
from lora.records import TrainingSettings
from lora.sizes.base_model import BaseModel, BaseUnknown, read_base
from lora.sizes.parameter_count import target_layers
from lora.trainings.memory_free import MemoryFree, memory_free, shortage
from lora.trainings.training import absolute_model, create_training, refuse_settings, start_keeper
from store.records import DatasetRecord, ServerRecord, TrainingRecord
from tui.commands.lora_watch import watch
from tui.commands.places import data_place, keeping, reading
from tui.format import called, number, span
from tui.lora.cost import Cost, cost_of
from tui.lora.form import Wanted
from tui.output import UsageError, complain, say, say_json

DONE, FAILED = 0, 1


def run(args: argparse.Namespace) -> int:
    place = data_place(args)
    with reading(place) as reader:
        dataset = reader.dataset(args.dataset)
        datasets, trainings, servers = reader.datasets(), reader.trainings(), reader.servers(active=True)
    wanted = Wanted(*_settings(args, dataset))
    python = training_python(args.python, args.vllm, os.environ)
    base = _base(wanted.settings)
    cost = _cost(wanted, base, servers, trainings, datasets)
    if not args.json:
        for line in cost_lines(cost):
            say(line)
    if not _has_memory(args, place, cost):
        return FAILED
    with keeping(args) as place:
        number_ = create_training(place, dataset, wanted.settings, python, name=wanted.name)
        start_keeper(place, number_)
    if args.no_wait:
        _tell(args, place, number_)
        return DONE
    return watch(args, place, number_)


def _settings(args: argparse.Namespace, dataset: DatasetRecord) -> tuple[TrainingSettings, DatasetRecord, str]:
    """Raises UsageError, before anything is asked of the machine."""
    assert dataset.id is not None
    model = args.model or dataset.model
    if model is None:
        raise UsageError(f"dataset {dataset.id} was prepared for no model: give the base by --model")
    settings = TrainingSettings(
        base_model=absolute_model(model),
        dataset_id=dataset.id,
        r=args.r,
        alpha=args.alpha,
        dropout=args.dropout,
        targets=args.targets,
        learning_rate=args.learning_rate,
        batch=args.batch,
        accumulation=args.accumulation,
        epochs=None if args.steps is not None else args.epochs or 3.0,
        steps=args.steps,
        max_length=args.max_length,
        gradient_checkpointing=not args.no_gradient_checkpointing,
        dtype=args.dtype,
        quantization=args.quantization,
        seed=args.seed,
        eval_every=args.eval_every,
        save_every=args.save_every,
        warmup=args.warmup,
    )
    try:
        check_model(settings.base_model)
    except ModelUnfit as error:
        raise UsageError(str(error)) from None
    refuse_settings(settings)
    default = name_from(f"{Path(settings.base_model).name}-{dataset.name}")
    return settings, dataset, check_name(args.name or default)


def _base(settings: TrainingSettings) -> BaseModel | str:
    """The base's layers, or why they are not known. Raises UsageError for what it does not have."""
    folder = Path(settings.base_model)
    if not folder.is_dir():
        return "the base is not here as a folder"
    try:
        base = read_base(folder)
    except BaseUnknown as error:
        return str(error)
    target_layers(base, settings.targets)
    if base.positions is not None and settings.max_length > base.positions:
        raise UsageError(f"--max-length {settings.max_length} is more than the model's {base.positions} positions")
    return base


def _cost(
    wanted: Wanted,
    base: BaseModel | str,
    servers: list[ServerRecord],
    trainings: list[TrainingRecord],
    datasets: list[DatasetRecord],
) -> Cost:
    return cost_of(wanted, base, memory_free(os.environ, servers, trainings), trainings[::-1], datasets)


def cost_lines(cost: Cost) -> list[str]:
    """What a training would come to, for a person: adapter, steps, memory, time."""
    assert cost.wanted is not None
    settings, dataset = cost.wanted.settings, cost.wanted.dataset
    lines = [
        f"{clean(cost.wanted.name)} on {called(clean(settings.base_model), 60)}, dataset {dataset.id} "
        f"({clean(dataset.name)}): {number(dataset.train_examples)} train, "
        f"{number(dataset.validation_examples)} validation"
    ]
    if cost.size is None:
        lines.append(f"adapter  its size is not known: {clean(cost.unknown or '', 200)}")
    else:
        lines.append(
            f"adapter  {number(cost.size.trainable)} of {number(cost.size.total)} parameters "
            f"({100 * cost.size.share:.2f} %), {cost.size.tensor_bytes() / 1e6:,.1f} MB"
        )
    each = settings.batch * settings.accumulation
    lines.append(f"steps    {number(cost.steps)}, of {number(each)} examples each")
    if cost.needed is not None:
        parts = ", ".join(f"{name} {gib:.1f}" for name, gib in cost.needed.parts)
        lines.append(f"memory   about {cost.needed.total_gib:.1f} GiB ({parts}); {_free(cost.free)}")
    if cost.free is not None and cost.free.shared is not None:
        lines.append(f"shared   {cost.free.shared}")
    if cost.pace is None or cost.steps is None:
        lines.append("time     not known before its first steps: no training of this model went before")
    else:
        lines.append(f"time     about {span(cost.pace.seconds * cost.steps)}, as {cost.pace.basis} went")
    return lines


def _free(free: MemoryFree | None) -> str:
    if free is None or free.free_gib is None:
        return "how much is free cannot be read"
    total = "" if free.total_gib is None else f" of {free.total_gib:.1f}"
    return f"{clean(free.device, 60)} has {free.free_gib:.1f}{total} free"


def _has_memory(args: argparse.Namespace, place: Path, cost: Cost) -> bool:
    """Whether it may begin. Servers of ours that hold what lacks are stopped where that is wanted."""
    if cost.needed is None or cost.free is None or (line := shortage(cost.needed, cost.free)) is None:
        return True
    for holder in cost.stoppable:
        assert holder.server_id is not None
        if not args.stop_servers and not _agreed(line, holder.server_id):
            break
        complain(f"server {holder.server_id}: {stop_server(place, holder.server_id)}")
        if (line := shortage(cost.needed, replace(_freed(place), holders=()))) is None:
            return True
    if args.anyway:
        complain(line)
        return True
    how = ", or let it by --stop-servers" if cost.stoppable else ""
    complain(f"not started: {line}{how}; --anyway tries all the same")
    return False


def _freed(place: Path) -> MemoryFree:
    with reading(place) as reader:
        return memory_free(os.environ, reader.servers(active=True), reader.trainings())


def _agreed(line: str, server_id: int) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    complain(line)
    print(f"Stop server {server_id} now? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell(args: argparse.Namespace, place: Path, training_id: int) -> None:
    if args.json:
        with reading(place) as reader:
            training = reader.training(training_id)
        shown: dict[str, Any] = {"training": training_id, "name": training.name, "path": str(place / training.path)}
        say_json(shown)
    else:
        say(f"training {training_id} runs: `llmtune lora attach {training_id}` follows it")
