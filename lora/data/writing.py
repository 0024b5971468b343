"""A prepared data set on disk: DATA_DIR/datasets/ID-NAME/{train,validation}.jsonl, for its owner alone, and its row."""

import hashlib
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.text import clean
from lora.data.lines import example_line
from lora.data.records import Examination
from lora.records import Example, LoraError
from store.clock import utc_now
from store.private_files import make_private_folder, write_new_private
from store.records import DatasetRecord
from store.writer import Writer

FOLDER = "datasets"
TRAIN, VALIDATION = "train.jsonl", "validation.jsonl"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def name_of(path: Path) -> str:
    """A name for the data set of a file: its own, in letters, digits, `.`, `_` and `-`."""
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:64].rstrip("-._")
    return text or "dataset"


def file_texts(found: Examination) -> dict[str, str]:
    """Each file's whole text by its name."""
    return {TRAIN: _text(found.train), VALIDATION: _text(found.validation)}


def data_hash(texts: dict[str, str]) -> str:
    """What `sha256sum train.jsonl validation.jsonl | sha256sum` says of them: either part's change shows."""
    lines = [f"{hashlib.sha256(texts[name].encode()).hexdigest()}  {name}\n" for name in (TRAIN, VALIDATION)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_dataset(place: Path, writer: Writer, found: Examination, name: str, report: dict[str, Any]) -> DatasetRecord:
    """Write both parts and their row in the data directory `place`: all of it or nothing.

    Raises LoraError where the disk refuses, StoreError.
    """
    texts = file_texts(found)
    folder = place / FOLDER
    unfinished = folder / f".new-{secrets.token_hex(4)}"
    finished: Path | None = None
    try:
        make_private_folder(folder)
        make_private_folder(unfinished)
        for file, text in texts.items():
            write_new_private(unfinished / file, text)
        with writer.transaction():
            record = _record(found, name, data_hash(texts), report)
            id = writer.insert(record)
            path = f"{FOLDER}/{id}-{name}"
            writer.update(DatasetRecord, id, path=path)
            unfinished.rename(place / path)
            finished = place / path
        finished = None
    except OSError as error:
        raise LoraError(f"{clean(str(folder))} cannot be written ({error.strerror}): nothing was kept") from None
    finally:
        for left in (unfinished, finished):  # the second where the database refuses in the end
            if left is not None:
                shutil.rmtree(left, ignore_errors=True)
    return replace(record, path=path, id=id)


def _record(found: Examination, name: str, hashed: str, report: dict[str, Any]) -> DatasetRecord:
    """Without its number, and so without its folder."""
    source = {
        "path": found.path,
        "sha256": found.source_hash,
        "bytes": found.source_bytes,
        "form": "+".join(found.forms),
    }
    return DatasetRecord(
        name=name,
        path="",
        data_hash=hashed,
        train_examples=len(found.train),
        validation_examples=len(found.validation),
        seed=found.seed,
        created_at=utc_now(),
        sources=[source],
        model=found.model,
        max_length=found.max_length,
        train_tokens=_tokens(found.train),
        validation_tokens=_tokens(found.validation),
        report=report,
    )


def _text(examples: Sequence[Example]) -> str:
    return "".join(map(example_line, examples))


def _tokens(examples: Sequence[Example]) -> int | None:
    counts = [example.tokens for example in examples if example.tokens is not None]
    return sum(counts) if len(counts) == len(examples) else None
