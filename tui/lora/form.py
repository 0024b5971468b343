"""What a person typed to begin a training, read into its settings, and what they may begin with. Pure."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from engine.numbers import finite
from engine.text import clean
from lora.adapters.registry import check_name, name_from
from lora.records import ALL_LINEAR, ATTENTION_QV, LoraError, TrainingSettings
from store.records import DatasetRecord, TrainingRecord
from tui.lora.curves import rate_text

FIELDS: tuple[tuple[str, str, str], ...] = (
    ("dataset", "data set", "its name or number"),
    ("model", "model", "a folder or a hub name"),
    ("name", "adapter", "what it is to be called"),
    ("r", "rank r", "16"),
    ("alpha", "alpha", "32; changes count alpha / r"),
    ("dropout", "dropout", "0 to 1, below 1"),
    ("targets", "targets", "all-linear, or layers: q_proj v_proj"),
    ("learning_rate", "learning rate", "2e-4"),
    ("batch", "batch", "conversations at once"),
    ("accumulation", "accumulate", "batches a step"),
    ("epochs", "epochs", "or steps; empty: as steps say"),
    ("steps", "steps", "empty: as epochs say"),
    ("max_length", "max. length", "tokens; longer ones are left out"),
    ("quantization", "weights", "nf4 (4 bits) or none"),
    ("dtype", "dtype", "auto, bfloat16, float16, float32"),
    ("checkpointing", "recompute", "yes: less memory, slower; or no"),
    ("seed", "seed", "a whole number"),
    ("eval_every", "evaluate", "every so many steps; empty: a tenth"),
    ("save_every", "checkpoint", "every so many steps; empty: a tenth"),
    ("warmup", "warm-up", "share of the steps, 0 to 1"),
)
"""Name, label, hint; the form has them in two columns."""

DTYPES = ("auto", "bfloat16", "float16", "float32")
QUANTIZATIONS = ("nf4", "none")
LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class TrainingForm:
    """The fields' texts, as they stand in the form."""

    dataset: str = ""
    model: str = ""
    name: str = ""
    r: str = "16"
    alpha: str = "32"
    dropout: str = "0.05"
    targets: str = ALL_LINEAR
    learning_rate: str = "2e-4"
    batch: str = "1"
    accumulation: str = "8"
    epochs: str = "3"
    steps: str = ""
    max_length: str = "1024"
    quantization: str = "nf4"
    dtype: str = "auto"
    checkpointing: str = "yes"
    seed: str = "0"
    eval_every: str = ""
    save_every: str = ""
    warmup: str = "0.03"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A training that may begin. `name` is its adapter's."""

    settings: TrainingSettings
    dataset: DatasetRecord
    name: str


def read_form(form: TrainingForm, datasets: Sequence[DatasetRecord]) -> Wanted | list[str]:
    """The training that the form says, or what is wrong with it, a line each."""
    mistakes: list[str] = []

    def whole(field: str, label: str, least: int = 1) -> int:
        text = getattr(form, field).strip()
        if not (text.isascii() and text.isdecimal()) or not least <= int(text[:12]) <= LARGEST or len(text) > 10:
            mistakes.append(f"{label}: {clean(text, 30)!r} is no whole number of at least {least}")
            return max(least, 1)
        return int(text)

    def number(field: str, label: str, least: float, below: float, words: str) -> float:
        text = getattr(form, field).strip()
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not (math.isfinite(found) and least <= found < below):
            mistakes.append(f"{label}: {clean(text, 30)!r} is not {words}")
            return least
        return found

    def maybe(field: str, label: str) -> int | None:
        return whole(field, label) if getattr(form, field).strip() else None

    def one_of(field: str, label: str, words: Sequence[str]) -> str:
        text = getattr(form, field).strip()
        if text not in words:
            mistakes.append(f"{label}: {clean(text, 30)!r} is not one of {', '.join(words)}")
            return words[0]
        return str(text)

    dataset = found_dataset(form.dataset, datasets)
    if dataset is None:
        there = ", ".join(clean(one.name, 30) for one in datasets[:5])
        mistakes.append(
            f"data set: there is none called {clean(form.dataset.strip(), 40)!r}; there are {there}"
            if there
            else "data set: there is none yet; esc, then p makes one of a file"
        )
    if not form.model.strip():
        mistakes.append("model: name the folder of the base model, or a hub name")
    name = form.name.strip()
    try:
        check_name(name)
    except LoraError as error:
        mistakes.append(f"adapter: {clean(str(error), 160)}")
    epochs, steps = form.epochs.strip(), form.steps.strip()
    if bool(epochs) == bool(steps):
        mistakes.append("give epochs or steps, one of the two")
    targets = targets_of(form.targets)
    if not targets:
        mistakes.append(f"targets: name layers, or {ALL_LINEAR}")
    settings = TrainingSettings(
        base_model=form.model.strip(),
        dataset_id=(dataset.id or 0) if dataset is not None else 0,
        r=whole("r", "rank r"),
        alpha=number("alpha", "alpha", 1e-6, 1e6, "a number above 0"),
        dropout=number("dropout", "dropout", 0.0, 1.0, "a share from 0 to below 1"),
        targets=targets or ALL_LINEAR,
        learning_rate=number("learning_rate", "learning rate", 1e-12, 10.0, "a number above 0 and below 10"),
        batch=whole("batch", "batch"),
        accumulation=whole("accumulation", "accumulate"),
        epochs=number("epochs", "epochs", 1e-3, 1e6, "a number above 0") if epochs else None,
        steps=maybe("steps", "steps"),
        max_length=whole("max_length", "max. length", 8),
        gradient_checkpointing=one_of("checkpointing", "recompute", ("yes", "no")) == "yes",
        dtype=one_of("dtype", "dtype", DTYPES),  # type: ignore[arg-type]
        quantization=one_of("quantization", "weights", QUANTIZATIONS),  # type: ignore[arg-type]
        seed=whole("seed", "seed", 0),
        validation=share_of(dataset),
        eval_every=maybe("eval_every", "evaluate"),
        save_every=maybe("save_every", "checkpoint"),
        warmup=number("warmup", "warm-up", 0.0, 1.0, "a share from 0 to below 1"),
    )
    return mistakes if mistakes or dataset is None else Wanted(settings, dataset, name)


def found_dataset(word: str, datasets: Sequence[DatasetRecord]) -> DatasetRecord | None:
    """By its number, else the newest of that name. `datasets` has the newest first."""
    text = word.strip()
    by_number = next((one for one in datasets if str(one.id) == text), None)
    return by_number or next((one for one in datasets if one.name == text), None)


def targets_of(text: str) -> str | tuple[str, ...]:
    """`all-linear`, or the names with blanks or commas between; "" where there is none."""
    words = tuple(dict.fromkeys(text.replace(",", " ").split()))
    return ALL_LINEAR if words == (ALL_LINEAR,) else words or ""


def other_targets(text: str) -> str:
    """Every linear layer, or the two of attention that the LoRA paper settles on: what the key changes between."""
    return ALL_LINEAR if targets_of(text) == ATTENTION_QV else ", ".join(ATTENTION_QV)


def share_of(dataset: DatasetRecord | None) -> float:
    """What the data set holds out, for the record."""
    if dataset is None:
        return 0.0
    total = dataset.train_examples + dataset.validation_examples
    return dataset.validation_examples / total if total > 0 else 0.0


def first_form(
    datasets: Sequence[DatasetRecord],
    chosen: int | None = None,
    like: TrainingRecord | None = None,
    model: str | None = None,
) -> TrainingForm:
    """What the form begins with: the chosen data set or the newest, the settings of `like` where there is one, `model`
    where neither names one."""
    wanted = chosen if chosen is not None else like.dataset_id if like is not None else None
    dataset = next((one for one in datasets if one.id == wanted), next(iter(datasets), None))
    base = (like.base_model if like is not None else None) or (dataset.model if dataset is not None else None) or model
    name = like.adapter_name if like is not None else name_from(dataset.name) if dataset is not None else ""
    return form_like(like, dataset, clean(base or "", 400), clean(name, 64))


def form_like(like: TrainingRecord | None, dataset: DatasetRecord | None, model: str, name: str) -> TrainingForm:
    kept: dict[str, Any] = asdict(TrainingForm())
    if like is not None:
        for field in fields(TrainingForm):
            if (text := _text(like.settings.get(field.name))) is not None:
                kept[field.name] = text
        rate = finite(like.settings.get("learning_rate"))
        kept["learning_rate"] = rate_text(rate) if rate else kept["learning_rate"]
        checkpointing = like.settings.get("gradient_checkpointing")
        if isinstance(checkpointing, bool):
            kept["checkpointing"] = "yes" if checkpointing else "no"
        if finite(like.settings.get("steps")) is not None:
            kept["epochs"] = ""
    elif dataset is not None and dataset.max_length:
        kept["max_length"] = str(dataset.max_length)
    of_dataset = "" if dataset is None else dataset.name
    return TrainingForm(**kept | {"dataset": clean(of_dataset, 64), "model": model, "name": name})


def _text(value: object) -> str | None:
    """A kept setting as it is typed; None for what is none of ours."""
    if isinstance(value, str):
        return clean(value, 200)
    if isinstance(value, list | tuple):
        return ", ".join(clean(str(one), 60) for one in value[:20])
    number = finite(value)
    return None if number is None else f"{number:g}" if abs(number) < 1e6 else f"{number:.0f}"
