"""What is asked of datasets, trainings, adapters and evaluations: the part of the reader that belongs to them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from store.errors import NotFound
from store.evaluation_job import EvaluationJobRecord, EvaluationState
from store.records import AdapterRecord, DatasetRecord, EvaluationRecord, TrainingRecord, TrainingState
from store.rows import R


class LoraQuestions(ABC):
    """Mixed into the Reader, whose `_select` it asks by."""

    @abstractmethod
    def _select(
        self, record_type: type[R], where: str = "1", values: Sequence[Any] = (), *, newest: int | None = None
    ) -> list[R]:
        """Rows in the order they came; with `newest`, only so many of the end."""

    def datasets(self) -> list[DatasetRecord]:
        """All prepared datasets, oldest first."""
        return self._select(DatasetRecord)

    def dataset(self, word: int | str) -> DatasetRecord:
        """The dataset that a person means: its number, its name (the newest of that name) or `last`; else NotFound."""
        return _found(self._meant(DatasetRecord, word), f"dataset {word!r}", "`llmtune lora prepare FILE` makes one")

    def trainings(self, states: Sequence[TrainingState] = ()) -> list[TrainingRecord]:
        """All trainings, oldest first; with `states`, those in one of them."""
        marks = ", ".join("?" for _ in states)
        return self._select(TrainingRecord, f"state IN ({marks})" if states else "1", tuple(states))

    def training(self, word: int | str) -> TrainingRecord:
        """The training that a person means: its number, its name (the newest of that name) or `last`; else NotFound."""
        return _found(self._meant(TrainingRecord, word), f"training {word!r}", "`llmtune lora list` shows them")

    def adapters(self, name: str | None = None) -> list[AdapterRecord]:
        """The versions of an adapter, lowest first; without a name all adapters, in the order they came. Not those that
        were deleted."""
        if name is None:
            return self._select(AdapterRecord, "deleted_at IS NULL")
        found = self._select(AdapterRecord, "name = ? AND deleted_at IS NULL", (name,))
        return sorted(found, key=lambda adapter: adapter.version)

    def adapters_ever(self) -> list[AdapterRecord]:
        """All versions of all names, those that were deleted among them, in the order they came."""
        return self._select(AdapterRecord)

    def adapter(self, word: int | str) -> AdapterRecord:
        """The adapter that a person means: `name@version`, `name` (its highest version) or, failing that, the number of
        its row; else NotFound, which says what there is of that name, or when it was deleted."""
        found = self.adapter_ever(word)
        if found.deleted_at is not None:
            raise NotFound(f"{found.label} was deleted at {found.deleted_at[:16].replace('T', ' ')} UTC")
        return found

    def adapter_ever(self, word: int | str) -> AdapterRecord:
        """As `adapter`, but also a version that was deleted, by its label or number: its row still says what it was."""
        text = str(word).strip()
        name, at, version = text.rpartition("@")
        if at and (number := _number(version)) is not None:
            found = self._select(AdapterRecord, "name = ? AND version = ?", (name, number))
        else:
            found = self.adapters(text)[-1:]
        if not found and (number := _number(text)) is not None:
            found = self._select(AdapterRecord, "id = ?", (number,))
        if not found and at and (versions := self.adapters(name)):
            among = ", ".join(str(adapter.version) for adapter in versions)
            raise NotFound(f"There is no {text}: of {name} there is version {among}")
        return _found(found, f"adapter {text!r}", "`llmtune lora list` shows them")

    def evaluations(self, adapter_id: int | None = None) -> list[EvaluationRecord]:
        """The evaluations of one version of an adapter, oldest first; without a number, those of all."""
        where, values = ("1", ()) if adapter_id is None else ("adapter_id = ?", (adapter_id,))
        return self._select(EvaluationRecord, where, values)

    def evaluation_jobs(
        self, states: Sequence[EvaluationState] = (), adapter_id: int | None = None
    ) -> list[EvaluationJobRecord]:
        """Evaluations as work, done or not, oldest first: all, those in one of `states`, those of one adapter."""
        where, values = ("1", list[Any]()) if adapter_id is None else ("adapter_id = ?", [adapter_id])
        if states:
            where, values = f"{where} AND state IN ({', '.join('?' for _ in states)})", [*values, *states]
        return self._select(EvaluationJobRecord, where, values)

    def evaluation_job(self, word: int | str) -> EvaluationJobRecord:
        """The evaluation that a person means: its number, the label of its adapter (the newest of it) or `last`; else
        NotFound."""
        found = self._meant(EvaluationJobRecord, word)
        return _found(found, f"evaluation {word!r}", "`llmtune lora list` shows them, `llmtune lora eval` makes one")

    def _meant(self, record_type: type[R], word: int | str) -> list[R]:
        text = str(word).strip()
        questions: list[tuple[str, tuple[Any, ...]]] = [("name = ?", (text,))]
        if (number := _number(text)) is not None:
            questions.insert(0, ("id = ?", (number,)))
        if text == "last":
            questions.append(("1", ()))
        for where, values in questions:
            if found := self._select(record_type, where, values, newest=1):
                return found
        return []


def _number(text: str) -> int | None:
    """A row's number; None for what is none or does not fit into SQLite's integers, which end at 2^63."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _found(found: list[R], what: str, how: str) -> R:
    if not found:
        raise NotFound(f"There is no {what}: {how}")
    return found[0]
