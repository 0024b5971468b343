"""What trainings of ours that run on the same device are yet to take of its memory.

A training that has just begun holds nearly nothing: a second one would be told that there is room, and minutes later
both would be out of memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.numbers import finite
from engine.processes.process import is_alive
from engine.text import clean
from lora.process.process_life import recorded
from lora.sizes.base_model import BaseUnknown, read_base
from lora.sizes.memory import CONTEXT_GIB, training_memory
from lora.sizes.parameter_count import TargetUnknown
from lora.trainings.training import settings_of
from store.records import TrainingRecord

SETTLED = 3
"""Steps after which a training on a GPU has held the most that it ever does, an evaluation before the first among
them."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """A training that computes on the same device. `more_gib` is what it will most likely still take, at least 0; 0,
    too, where nothing is known of its model."""

    training_id: int
    name: str
    more_gib: float

    @property
    def called(self) -> str:
        """ "training 3 (alpaca)"."""
        return f"training {self.training_id} ({clean(self.name, 60)})"


def computes(training: TrainingRecord) -> bool:
    """Its trainer, or the keeper that is about to start one."""
    trainer = recorded(training)
    keeper = recorded(replace(training, pid=training.keeper_pid, start_ticks=training.keeper_start_ticks))
    return any(one is not None and is_alive(one) for one in (trainer, keeper))


def sharing(
    trainings: Iterable[TrainingRecord],
    gpu: bool,
    held: Callable[[TrainingRecord], float | None],
    alive: Callable[[TrainingRecord], bool] = computes,
) -> tuple[Sharing, ...]:
    """The trainings that run on the GPU, else on the processor, most to come first. `held` says how many GiB one holds
    now: None for one that is seen on another device."""
    found = []
    for training in trainings:
        if training.id is None or training.state != "running" or _elsewhere(training, gpu) or not alive(training):
            continue
        has = held(training)
        if has is not None:
            found.append(Sharing(training.id, training.name, max(0.0, _most(training, gpu) - has)))
    return tuple(sorted(found, key=lambda one: -one.more_gib))


def _elsewhere(training: TrainingRecord, gpu: bool) -> bool:
    """Whether it has said that it computes on the other kind of device."""
    device = training.raw.get("plan", {}).get("device")
    return device is not None and (device != "processor") is not gpu


def _most(training: TrainingRecord, gpu: bool) -> float:
    """GiB that it holds at most: as it has shown, else as is reckoned; 0 where neither is known."""
    shown = finite(training.raw.get("live", {}).get("gpu_peak_gib"))
    if gpu and shown is not None and (training.step or 0) >= SETTLED:
        return shown + CONTEXT_GIB[True]
    try:
        return training_memory(read_base(Path(training.base_model)), settings_of(training), gpu).total_gib
    except (BaseUnknown, TargetUnknown):
        return 0.0
