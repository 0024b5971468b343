"""The conversations that an adapter is held against: those of its own data set that its training never saw."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from engine.text import clean
from lora.data.lines import read_examples
from lora.data.writing import VALIDATION
from lora.records import Example, LoraError
from store.reader import Reader
from store.records import AdapterRecord, DatasetRecord


class NoOwnData(LoraError):
    """There are no conversations here that the adapter was to learn and did not see."""


@dataclass(frozen=True, slots=True)
class OwnData:
    """`what` says for a person where the conversations come from; `data_hash` is the SHA-256 of the file."""

    path: Path
    what: str
    data_hash: str
    examples: tuple[Example, ...]
    dataset_id: int | None = None


def own_data(
    reader: Reader, data_dir: Path, adapter: AdapterRecord, dataset: str | None = None, file: str | None = None
) -> OwnData:
    """The prepared `file`, else the validation part of `dataset`, else that of the data the adapter was trained on.

    Raises NoOwnData, LoraError (DataUnfit) and NotFound.
    """
    if file is not None:
        return _read(Path(file).expanduser().absolute(), clean(file, 120))
    found = reader.dataset(dataset) if dataset is not None else _trained_on(reader, adapter)
    if found is None:
        raise NoOwnData(
            f"{adapter.label} was made elsewhere and its data is not here: give --dataset NAME (`llmtune lora prepare` "
            "makes one) or --data FILE of prepared conversations"
        )
    if not found.validation_examples:
        raise NoOwnData(f"dataset {clean(found.name, 60)} holds nothing out: prepare it with --validation above 0")
    what = f"the validation part of dataset {clean(found.name, 60)}"
    return _read(data_dir / found.path / VALIDATION, what, found.id)


def _trained_on(reader: Reader, adapter: AdapterRecord) -> DatasetRecord | None:
    if adapter.training_id is not None:
        return reader.dataset(reader.training(adapter.training_id).dataset_id)
    same = [one for one in reader.datasets() if adapter.data_hash and one.data_hash == adapter.data_hash]
    return same[-1] if same else None


def _read(path: Path, what: str, dataset_id: int | None = None) -> OwnData:
    examples = read_examples(path)
    if not examples:
        raise LoraError(f"{what} holds no conversation: give another")
    return OwnData(path, what, hashlib.sha256(path.read_bytes()).hexdigest(), examples, dataset_id)
