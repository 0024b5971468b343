"""What the LoRA screens have done, each by the room that does it: slow, so call these in a thread. No widgets here.

Each raises EngineError, StoreError or OSError, in one line.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from store.database import open_reader, open_writer
from store.location import database_file
from store.records import AdapterRecord, TrainingRecord
from tui.lora.standing import GOING_ON, Held

if TYPE_CHECKING:
    from tui.lora.form import Wanted


def may_stop(training: TrainingRecord) -> bool:
    """Whether there is something to stop."""
    return training.state in GOING_ON


def may_resume(training: TrainingRecord, held: Held) -> bool:
    """Not while its keeper lives, nor once it is done."""
    return training.state != "done" and held != "kept"


def start_training(data_dir: Path, wanted: "Wanted", vllm: str | None) -> int:
    """Keep the training, have its keeper begin it, and return its number."""
    from lora.training import create_training, start_keeper
    from lora.training_python import training_python

    python = training_python(None, vllm, os.environ)
    number = create_training(data_dir, wanted.dataset, wanted.settings, python, name=wanted.name)
    start_keeper(data_dir, number)
    return number


def stop_training(data_dir: Path, training_id: int) -> str:
    """Ask its keeper to stop; what came of it."""
    from lora.training import stop_training

    return stop_training(data_dir, training_id)


def resume_training(data_dir: Path, training_id: int) -> str:
    """A new keeper for it; what that found to do."""
    from lora.process_life import Life
    from lora.training import start_keeper

    with open_reader(database_file(data_dir)) as reader:
        alone = Life.left(reader.training(training_id)) is not None
    start_keeper(data_dir, training_id)
    if alone:
        return f"training {training_id} is followed again: its trainer computed on"
    return f"training {training_id} goes on from its newest checkpoint"


def why_not_deleted(data_dir: Path, adapter: AdapterRecord) -> str | None:
    """What needs its files, in a line that says what to do; None where nothing does."""
    from lora.deletion import AdapterInUse, require_unused

    with open_reader(database_file(data_dir)) as reader:
        try:
            require_unused(reader, data_dir, adapter)
        except AdapterInUse as error:
            return str(error)
    return None


def delete_adapter(data_dir: Path, adapter: AdapterRecord) -> str:
    """Its files go, its number is not given again."""
    from lora.deletion import delete_version

    database = database_file(data_dir)
    with open_writer(database) as writer, open_reader(database) as reader:
        delete_version(writer, reader, data_dir, adapter)
    return f"{adapter.label} is deleted; its number is not given again"
