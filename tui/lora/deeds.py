"""What the LoRA screens have done, each by the room that does it: slow, so call these in a thread. No widgets here.

Each raises EngineError, StoreError or OSError, in one line.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from store.database import open_reader, open_writer
from store.location import database_file
from store.records import AdapterRecord
from tui.lora.standing import GOING_ON, Held

if TYPE_CHECKING:
    from lora.process.work import Work
    from tui.lora.form import Wanted


def may_stop(work: "Work") -> bool:
    """Whether there is something to stop."""
    return work.state in GOING_ON


def may_resume(work: "Work", held: Held) -> bool:
    """Not while its keeper lives, nor once it is done."""
    return work.state != "done" and held != "kept"


def start_training(data_dir: Path, wanted: "Wanted", vllm: str | None) -> int:
    """Keep the training, have its keeper begin it, and return its number."""
    from lora.process.training_python import training_python
    from lora.trainings.training import create_training, start_keeper

    python = training_python(None, vllm, os.environ)
    number = create_training(data_dir, wanted.dataset, wanted.settings, python, name=wanted.name)
    start_keeper(data_dir, number)
    return number


def stop_work(data_dir: Path, work: "Work") -> str:
    """Ask the keeper of a training or an evaluation to stop; what came of it."""
    from lora.process.work import stop_work
    from tui.lora.held import kind_of

    assert work.id is not None
    return f"{kind_of(work)} {work.id}: {stop_work(data_dir, kind_of(work), work.id)}"


def resume_work(data_dir: Path, work: "Work") -> str:
    """A new keeper for a training or an evaluation; what that found to do."""
    from lora.evaluations.evaluating import start_evaluation
    from lora.process.process_life import Life
    from lora.trainings.training import start_keeper
    from tui.lora.held import kind_of

    assert work.id is not None
    kind = kind_of(work)
    with open_reader(database_file(data_dir)) as reader:
        now = reader.training(work.id) if kind == "training" else reader.evaluation_job(work.id)
    alone = Life.left(now) is not None
    (start_keeper if kind == "training" else start_evaluation)(data_dir, work.id)
    if alone:
        return f"{kind} {work.id} is followed again: its process computed on"
    how = "from its newest checkpoint" if kind == "training" else "with what is not yet measured"
    return f"{kind} {work.id} goes on {how}"


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
