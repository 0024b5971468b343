"""What the LoRA screen shows: read on the poller's thread, the lists again only when something was committed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from store.evaluation_job import EvaluationJobRecord
from store.records import AdapterRecord, DatasetRecord, ServerRecord, TrainingRecord
from tui.lora.details import AdapterDetails, DatasetDetails, Details, TrainingDetails
from tui.lora.lines import (
    Kind,
    LoraLine,
    adapter_line,
    dataset_line,
    served_by,
    training_line,
)
from tui.lora.progress import PROGRESS, Progress, ProgressTail, with_record
from tui.lora.standing import GOING_ON, Held

if TYPE_CHECKING:
    from lora.process.work import Work
    from store.reader import Reader

EVENTS = 20
TAILS_KEPT = 8

Chosen = tuple[Kind, int]


@dataclass(frozen=True, slots=True)
class LoraSnapshot:
    """The lists, the newest first, as records and as lines; `chosen` is what lies under the cursor, `details` all that
    is said of it. `servers` have not ended."""

    trainings: tuple[TrainingRecord, ...] = ()
    adapters: tuple[AdapterRecord, ...] = ()
    datasets: tuple[DatasetRecord, ...] = ()
    servers: tuple[ServerRecord, ...] = ()
    training_lines: tuple[LoraLine, ...] = ()
    adapter_lines: tuple[LoraLine, ...] = ()
    dataset_lines: tuple[LoraLine, ...] = ()
    chosen: Chosen | None = None
    details: Details | None = None

    def lines(self, kind: Kind) -> tuple[LoraLine, ...]:
        """Those of one list."""
        found = {"training": self.training_lines, "adapter": self.adapter_lines, "dataset": self.dataset_lines}
        return found[kind]

    def training(self, id: int) -> TrainingRecord | None:
        return next((one for one in self.trainings if one.id == id), None)

    def adapter(self, id: int) -> AdapterRecord | None:
        return next((one for one in self.adapters if one.id == id), None)

    def dataset(self, id: int) -> DatasetRecord | None:
        return next((one for one in self.datasets if one.id == id), None)


@dataclass(frozen=True, slots=True)
class _Lists:
    trainings: tuple[TrainingRecord, ...] = ()
    adapters: tuple[AdapterRecord, ...] = ()
    datasets: tuple[DatasetRecord, ...] = ()
    servers: tuple[ServerRecord, ...] = ()
    jobs: Mapping[int, EvaluationJobRecord] = field(default_factory=dict)  # the newest evaluation of each adapter


class ProgressFiles:
    """The progress of trainings, each file followed from where it was read to. For one thread."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._tails: dict[int, ProgressTail] = {}

    def read(self, training: TrainingRecord) -> Progress:
        """With what the store says where there is no file."""
        number = training.id or 0
        path = self._data_dir / training.path / PROGRESS
        tail = self._tails.pop(number, None)
        if tail is None or tail.path != path:
            tail = ProgressTail(path)
        self._tails[number] = tail  # the last read is the last to be dropped
        if len(self._tails) > TAILS_KEPT:
            del self._tails[next(iter(self._tails))]
        return with_record(tail.read(), training)


class LoraSource:
    """`held(work)` says who holds a training or an evaluation that has not ended. For one thread."""

    def __init__(self, data_dir: Path, held: Callable[["Work"], Held]) -> None:
        self._data_dir = data_dir
        self._held = held
        self._files = ProgressFiles(data_dir)
        self._lists = _Lists()
        self._jobs_held: dict[int, Held] = {}  # of those under way, by their adapters
        self._seen: int | None = None
        self._last = LoraSnapshot()

    def read(self, reader: "Reader", chosen: Chosen | None) -> LoraSnapshot:
        """The same object as before where nothing changed."""
        version = reader.version()
        changed = version != self._seen
        if changed:
            self._lists = _lists(reader)
        lists = self._lists
        jobs_held = {at: self._held(job) for at, job in lists.jobs.items() if job.state in GOING_ON}
        changed = changed or jobs_held != self._jobs_held  # a keeper that was killed writes nothing
        self._jobs_held = jobs_held
        training_lines = tuple(
            before if before is not None and one.state not in GOING_ON else self._training_line(one)
            for one, before in zip_longest(lists.trainings, () if changed else self._last.training_lines)
        )
        if changed or not self._last.adapter_lines:
            served = self._served(lists.servers, lists.adapters)
            adapter_lines = tuple(
                adapter_line(one, served.get(one.id or 0, ()), *self._job(one.id or 0)) for one in lists.adapters
            )
            dataset_lines = tuple(map(dataset_line, lists.datasets))
        else:
            adapter_lines, dataset_lines = self._last.adapter_lines, self._last.dataset_lines
        found = LoraSnapshot(
            lists.trainings,
            lists.adapters,
            lists.datasets,
            lists.servers,
            training_lines,
            adapter_lines,
            dataset_lines,
            chosen,
            self._details(reader, chosen, changed),
        )
        self._seen = version
        if found != self._last:
            self._last = found
        return self._last

    def _job(self, adapter_id: int) -> tuple[EvaluationJobRecord | None, Held]:
        """Its newest evaluation, and who holds it."""
        return self._lists.jobs.get(adapter_id), self._jobs_held.get(adapter_id, "left")

    def _training_line(self, training: TrainingRecord) -> LoraLine:
        goes_on = training.state in GOING_ON
        held = self._held(training) if goes_on else "left"
        progress = self._files.read(training) if goes_on else with_record(Progress(), training)
        return training_line(training, held, progress)

    def _served(
        self, servers: Sequence[ServerRecord], adapters: Sequence[AdapterRecord]
    ) -> dict[int, tuple[ServerRecord, ...]]:
        return served_by(servers, adapters, lambda adapter: str(self._data_dir / adapter.path))

    def _details(self, reader: "Reader", chosen: Chosen | None, changed: bool) -> Details | None:
        if chosen is None:
            return None
        kind, number = chosen
        if kind == "training":
            return self._training(reader, number)
        if not changed and chosen == self._last.chosen:
            return self._last.details
        return self._adapter(reader, number) if kind == "adapter" else self._dataset(number)

    def _training(self, reader: "Reader", number: int) -> TrainingDetails | None:
        lists = self._lists
        training = next((one for one in lists.trainings if one.id == number), None)
        if training is None:
            return None
        return TrainingDetails(
            training,
            self._held(training) if training.state in GOING_ON else "left",
            self._files.read(training),
            next((one for one in lists.datasets if one.id == training.dataset_id), None),
            tuple(one for one in reversed(lists.adapters) if one.training_id == number),
            tuple(reader.events(training_id=number, limit=EVENTS)),
        )

    def _adapter(self, reader: "Reader", number: int) -> AdapterDetails | None:
        lists = self._lists
        adapter = next((one for one in lists.adapters if one.id == number), None)
        if adapter is None:
            return None
        return AdapterDetails(
            adapter,
            tuple(sorted((one for one in lists.adapters if one.name == adapter.name), key=lambda one: one.version)),
            self._served(lists.servers, [adapter])[number],
            next((one for one in lists.trainings if one.id == adapter.training_id), None),
            next(reversed(reader.evaluations(number)), None),
            *self._job(number),
        )

    def _dataset(self, number: int) -> DatasetDetails | None:
        dataset = next((one for one in self._lists.datasets if one.id == number), None)
        if dataset is None:
            return None
        return DatasetDetails(dataset, tuple(one for one in self._lists.trainings if one.dataset_id == number))


def _lists(reader: "Reader") -> _Lists:
    """Trainings and data sets with the newest first; the versions of one adapter stand together, the newest first."""
    adapters = reader.adapters()
    newest = {adapter.name: at for at, adapter in enumerate(adapters)}
    adapters.sort(key=lambda adapter: (-newest[adapter.name], -adapter.version))
    return _Lists(
        tuple(reversed(reader.trainings())),
        tuple(adapters),
        tuple(reversed(reader.datasets())),
        tuple(reader.servers(active=True)),
        {job.adapter_id: job for job in reader.evaluation_jobs()},
    )
