"""What a training in the form would come to: size of its adapter, steps, memory against what is free, time. Pure."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from engine.numbers import finite
from engine.text import clean
from lora.records import TrainingSettings
from lora.sizes.base_model import BaseModel
from lora.sizes.memory import MemoryNeeded, training_memory
from lora.sizes.parameter_count import AdapterSize, TargetUnknown, adapter_size
from lora.trainings.memory_free import SMALL_GIB, Holder, MemoryFree
from store.records import DatasetRecord, TrainingRecord
from tui.document_text import wrapped
from tui.format import ABSENT, number, span
from tui.lora.form import Wanted
from tui.lora.lines import size_text
from tui.panels.row import ERROR, GOOD, MUTED, PLAIN, WARNING, Row

LABEL_W = 9
FEW = 0.9  # above this share of what is free an estimate says nothing sure
LEAST_TIMED = 2  # steps of a training from which its pace is taken


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of a step, and which training that is of."""

    seconds: float
    basis: str


@dataclass(frozen=True, slots=True)
class Cost:
    """None is what cannot be told; `mistakes` are of the form or of the model, a line each. `free` None: not asked
    yet."""

    wanted: Wanted | None = None
    mistakes: tuple[str, ...] = ()
    unknown: str | None = None  # why nothing is known of the model's layers
    size: AdapterSize | None = None
    needed: MemoryNeeded | None = None
    free: MemoryFree | None = None
    steps: int | None = None
    pace: Pace | None = None

    @property
    def short_gib(self) -> float | None:
        """What lacks; None where it fits, or where that cannot be told."""
        if self.needed is None or self.free is None or self.free.left_gib is None:
            return None
        lacks = self.needed.total_gib - self.free.left_gib
        return lacks if lacks > 0 else None

    @property
    def stoppable(self) -> tuple[Holder, ...]:
        """Servers of ours that hold the memory, most first."""
        return tuple(one for one in (self.free.holders if self.free is not None else ()) if one.server_id is not None)


def cost_of(
    wanted: Wanted | list[str],
    base: BaseModel | str,
    free: MemoryFree | None,
    trainings: Sequence[TrainingRecord] = (),
    datasets: Sequence[DatasetRecord] = (),
) -> Cost:
    """`base` is the model, or why its layers are not known. `free` decides, too, whether a GPU is counted for."""
    if isinstance(wanted, list):
        return Cost(mistakes=tuple(wanted), free=free)
    settings = wanted.settings
    steps = steps_of(settings, wanted.dataset.train_examples)
    pace = pace_of(settings, wanted.dataset, trainings, datasets)
    if isinstance(base, str):
        return Cost(wanted, unknown=base, free=free, steps=steps, pace=pace)
    try:
        size = adapter_size(base, settings.r, settings.targets)
        needed = training_memory(base, settings, gpu=free is None or free.gpu)
    except TargetUnknown as error:
        return Cost(mistakes=(f"targets: {clean(str(error), 200)}",), free=free)
    return Cost(wanted, size=size, needed=needed, free=free, steps=steps, pace=pace)


def steps_of(settings: TrainingSettings, examples: int) -> int:
    """Updates of the weights: as many as are asked for, or those of the epochs, of which the last may be a part (as
    transformers' Trainer counts: an epoch's last update may have fewer batches)."""
    if settings.steps is not None:
        return settings.steps
    updates = math.ceil(math.ceil(max(examples, 1) / settings.batch) / settings.accumulation)
    return max(1, math.ceil((settings.epochs or 0.0) * updates))


def pace_of(
    settings: TrainingSettings,
    dataset: DatasetRecord,
    trainings: Sequence[TrainingRecord],
    datasets: Sequence[DatasetRecord],
) -> Pace | None:
    """As the newest training of the same model went, by the tokens of a step; by its conversations where no tokenizer
    has counted both. `trainings` has the newest first."""
    by_number = {one.id: one for one in datasets}
    same = {settings.base_model, os.path.abspath(os.path.expanduser(settings.base_model))}  # as a training keeps it
    for one in trainings:
        step, seconds = finite(one.step), finite(one.seconds)
        batch, accumulation = finite(one.settings.get("batch")), finite(one.settings.get("accumulation"))
        if one.base_model not in same or one.settings.get("quantization") != settings.quantization:
            continue
        if step is None or seconds is None or step < LEAST_TIMED or seconds <= 0 or not batch or not accumulation:
            continue
        before, now = tokens_each(by_number.get(one.dataset_id)), tokens_each(dataset)
        share = settings.batch * settings.accumulation / (batch * accumulation)
        if before is not None and now is not None:
            share *= now / before
        if math.isfinite(share) and 0 < share < 1e9:
            return Pace(seconds / step * share, f"training {one.id}, {number(seconds / step, 2)} s a step")
    return None


def tokens_each(dataset: DatasetRecord | None) -> float | None:
    """Of a conversation, on average."""
    if dataset is None or not dataset.train_tokens or dataset.train_examples <= 0:
        return None
    return dataset.train_tokens / dataset.train_examples


def cost_rows(cost: Cost, width: int) -> list[Row]:
    """What is wrong, or adapter, steps, memory, who holds it, time; folded to so many cells."""
    if cost.mistakes:
        return _folded([("", f"✗ {line}", ERROR) for line in cost.mistakes], width)
    if cost.wanted is None:
        return _folded([("", "counting …", MUTED)], width)
    lines = [_adapter(cost), _steps(cost), _memory(cost)]
    if cost.needed is not None:
        lines.append(("", ", ".join(f"{name} {gib:.1f}" for name, gib in cost.needed.parts), MUTED))
    return _folded([*lines, *_holders(cost), _time(cost)], width)


Said = tuple[str, str, str]
"""Label, text, what it means."""


def _folded(lines: Sequence[Said], width: int) -> list[Row]:
    rows: list[Row] = []
    for label, text, kind in lines:
        for at, part in enumerate(wrapped(text, max(width - LABEL_W - 1, 20)) or [ABSENT]):
            rows.append(((f" {label if at == 0 else '':<{LABEL_W}}", MUTED), (part, kind)))
    return rows


def _adapter(cost: Cost) -> Said:
    size = cost.size
    if size is None:
        return ("adapter", f"its size is not known: {cost.unknown or ''}", WARNING)
    said = (
        f"{number(size.trainable)} parameters in {number(size.modules)} layers, of {number(size.total)} "
        f"({100 * size.share:.3f} %), {size_text(size.tensor_bytes())}"
    )
    return ("adapter", said, PLAIN)


def _steps(cost: Cost) -> Said:
    assert cost.wanted is not None
    settings, dataset = cost.wanted.settings, cost.wanted.dataset
    each = settings.batch * settings.accumulation
    passes = f", {settings.epochs:g} epochs" if settings.epochs is not None else ""
    said = f"{number(cost.steps)}: {number(dataset.train_examples)} conversations, {number(each)} a step{passes}"
    return ("steps", said, PLAIN)


def _memory(cost: Cost) -> Said:
    if cost.needed is None:
        return ("memory", "what it needs is not known", WARNING)
    needs = f"needs about {cost.needed.total_gib:.1f} GiB"
    free = cost.free
    if free is None:
        return ("memory", f"{needs}; asking what is free …", PLAIN)
    if free.free_gib is None or free.left_gib is None:
        return ("memory", f"{needs}; what is free cannot be read", PLAIN)
    total = "" if free.total_gib is None else f" of {free.total_gib:.1f}"
    said = f"{needs}, {clean(free.device, 40)} has {free.free_gib:.1f}{total} free"
    if free.free_gib - free.left_gib >= SMALL_GIB:
        said += f", of which {free.free_gib - free.left_gib:.1f} will be taken by trainings that run"
    if (lacks := cost.short_gib) is not None:
        return ("memory", f"✗ {lacks:.1f} GiB too little: {said}", ERROR)
    if cost.needed.total_gib > FEW * free.left_gib:
        return ("memory", f"? it may fit: {said}", WARNING)
    return ("memory", f"✔ it fits: {said}", GOOD)


def _holders(cost: Cost) -> list[Said]:
    """Those who hold memory, where it matters or can be changed."""
    free = cost.free
    if free is None:
        return []
    shared = [("shared", free.shared, WARNING)] if free.shared is not None else []
    if not free.holders:
        return shared
    held = ", ".join(clean(one.name, 80) for one in free.holders[:3])
    rows = [("held by", held, PLAIN if cost.short_gib is None else WARNING)]
    if cost.stoppable:
        rows.append(("", f"^g stops server {cost.stoppable[0].server_id}, after one question", MUTED))
    return rows + shared


def _time(cost: Cost) -> Said:
    if cost.pace is None or cost.steps is None:
        return ("time", "not known yet: no training of this model went before", PLAIN)
    return ("time", f"about {span(cost.pace.seconds * cost.steps)}, as {cost.pace.basis} went", PLAIN)


def question(cost: Cost) -> str:
    """The one question before it begins."""
    assert cost.wanted is not None
    wanted = cost.wanted
    about = f", about {span(cost.pace.seconds * cost.steps)}" if cost.pace is not None and cost.steps else ""
    short = cost.short_gib
    lacks = f" There are {short:.1f} GiB too little free for it: it will most likely fail." if short is not None else ""
    return (
        f'Train "{wanted.name}" on {clean(wanted.settings.base_model, 80)} with {clean(wanted.dataset.name, 40)}: '
        f"{number(cost.steps)} steps{about}?{lacks} It goes on when this program is left."
    )
