"""Data sets, trainings and adapters as the lines of their lists. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from engine.launch.adapter_flags import modules_of
from engine.numbers import finite
from engine.text import clean
from store.clock import parse_utc
from store.evaluation_job import EvaluationJobRecord
from store.records import AdapterRecord, DatasetRecord, ServerRecord, TrainingRecord
from tui.format import ABSENT, called, number, span
from tui.lora.curves import loss_text
from tui.lora.evaluating import share_text
from tui.lora.progress import Progress
from tui.lora.standing import Held, computes, training_state

Kind = Literal["training", "adapter", "dataset"]
KINDS: tuple[Kind, ...] = ("training", "adapter", "dataset")
TITLES: Mapping[Kind, tuple[str, ...]] = {
    "training": ("trainings", "state", "step", "loss", "eval", "left"),
    "adapter": ("adapters", "base", "r", "loss", "size", "served"),
    "dataset": ("data sets", "train", "valid.", "tokens", "made", "form"),
}
WIDTHS: Mapping[Kind, tuple[int, ...]] = {
    "training": (22, 14, 14, 9, 9),
    "adapter": (22, 18, 5, 9, 10),
    "dataset": (22, 10, 9, 12, 13),
}
"""Each with one blank before it; the last column has what is left."""
RIGHT: Mapping[Kind, frozenset[int]] = {
    "training": frozenset({2, 3, 4}),
    "adapter": frozenset({2, 3, 4}),
    "dataset": frozenset({1, 2, 3, 4}),
}
NAME_CELLS = 60


@dataclass(frozen=True, slots=True)
class LoraLine:
    """One line of a list: its cells in the order of TITLES, and what the filter looks in."""

    id: int
    cells: tuple[str, ...]
    haystack: str


def training_line(training: TrainingRecord, held: Held, progress: Progress) -> LoraLine:
    """`progress` as far as it is known: of one that goes on what its file tells, else what the store holds."""
    step, planned = progress.steps[-1].step if progress.steps else training.step, progress.planned or training.steps
    state = training_state(training, held, progress)
    began = ABSENT if training.started_at is None else day(training.started_at)
    cells = (
        clean(training.name, NAME_CELLS),
        state,
        f"{number(finite(step))}/{number(finite(planned))}",
        loss_text(progress.last("loss") if progress.steps else training.loss),
        loss_text(progress.last("eval_loss") if progress.steps else training.eval_loss),
        span(progress.seconds_left()) if computes(training, held) else began,
    )
    words = (str(training.id), training.name, training.adapter_name, training.base_model, state)
    return LoraLine(training.id or 0, cells, haystack(words))


def adapter_line(
    adapter: AdapterRecord,
    served: Sequence[ServerRecord],
    job: EvaluationJobRecord | None = None,
    held: Held = "left",
) -> LoraLine:
    """With the servers on which it is served now; while an evaluation `job` of it is under way, that instead of its
    loss."""
    cells = (
        clean(adapter.label, NAME_CELLS),
        short_model(adapter.base_model, WIDTHS["adapter"][1] - 1),
        rank_text(adapter.parameters),
        (job is not None and share_text(job, held)) or loss_text(validation_loss(adapter)),
        size_text(adapter.size_bytes),
        served_text(served),
    )
    words = (str(adapter.id), adapter.label, adapter.base_model, *(server.name for server in served))
    return LoraLine(adapter.id or 0, cells, haystack(words))


def dataset_line(dataset: DatasetRecord) -> LoraLine:
    cells = (
        clean(dataset.name, NAME_CELLS),
        number(finite(dataset.train_examples)),
        number(finite(dataset.validation_examples)),
        number(finite(dataset.train_tokens)),
        day(dataset.created_at),
        forms_text(dataset),
    )
    return LoraLine(dataset.id or 0, cells, haystack((str(dataset.id), dataset.name, cells[-1])))


def haystack(words: Sequence[str]) -> str:
    """What the filter looks in: one line, of bounded length whatever the words hold."""
    return clean(" ".join(word[:200] for word in words)).lower()


def matching(lines: Sequence[LoraLine], words: str) -> tuple[LoraLine, ...]:
    """The lines that hold every word of the filter."""
    wanted = words.lower().split()
    return tuple(line for line in lines if all(word in line.haystack for word in wanted))


def day(at: str) -> str:
    """Month, day and time of day, here; `–` for what is no time."""
    try:
        return parse_utc(at).astimezone().strftime("%m-%d %H:%M")
    except (ValueError, OverflowError):
        return ABSENT


def short_model(model: str, width: int) -> str:
    """A model's name for so many cells: the end of its path tells it apart."""
    return called(PurePath(clean(model, 400)).name or clean(model, 400), width)


def size_text(size: int | None) -> str:
    """`20.2 MB`, of 10^6 bytes as files are counted."""
    found = finite(size)
    if found is None or abs(found) > 1e18:
        return ABSENT
    return (
        f"{found / 1e9:,.1f} GB"
        if found >= 1e9
        else f"{found / 1e6:,.1f} MB"
        if found >= 1e6
        else f"{found / 1e3:,.1f} kB"
    )


def rank_text(parameters: Mapping[str, Any]) -> str:
    """Its rank, whatever an imported config says."""
    rank = finite(parameters.get("r"))
    return ABSENT if rank is None or not 0 < rank < 1e4 else f"{rank:g}"


def validation_loss(adapter: AdapterRecord) -> float | None:
    return finite(adapter.losses.get("validation"))


def forms_text(dataset: DatasetRecord) -> str:
    """`alpaca`, of several files `alpaca+sharegpt`."""
    forms = (str(source.get("form", "")) for source in dataset.sources if isinstance(source, dict))
    return clean("+".join(dict.fromkeys(form[:40] for form in forms if form)), 60) or ABSENT


def served_text(servers: Sequence[ServerRecord]) -> str:
    """`● qwen-7b`, and how many more."""
    if not servers:
        return "○ nowhere"
    more = f" +{len(servers) - 1}" if len(servers) > 1 else ""
    return f"● {clean(servers[0].name, 30)}{more}"


def served_by(
    servers: Sequence[ServerRecord], adapters: Sequence[AdapterRecord], folder_of: Callable[[AdapterRecord], str]
) -> dict[int, tuple[ServerRecord, ...]]:
    """The servers that were started with each adapter and have not ended, by its number."""
    by_folder: dict[str, list[ServerRecord]] = {}
    for server in servers:
        for path in modules_of(server).values():
            by_folder.setdefault(path.rstrip("/"), []).append(server)
    return {adapter.id or 0: tuple(by_folder.get(folder_of(adapter).rstrip("/"), ())) for adapter in adapters}
