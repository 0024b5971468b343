"""What is alike in starting and stopping the work of a keeper of this room: a training or an evaluation."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from engine.keeper import client
from engine.keeper.hold import only_keeper
from engine.keeper.journal import Journal, say, unsaid
from engine.keeper.spawn import spawn_keeper
from engine.records import EngineError
from engine.text import clean, redact
from lora.process.process_life import Life
from lora.records import LoraError
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.evaluation_job import EvaluationJobRecord
from store.location import database_file
from store.reader import Reader
from store.records import TrainingRecord
from store.writer import Writer

Work = TrainingRecord | EvaluationJobRecord
WorkKind = Literal["training", "evaluation"]
STOPPED = "stopped, as asked"
OVER = ("done", "stopped", "failed")

_MODULES: Mapping[WorkKind, str] = {"training": "lora.keeper", "evaluation": "lora.evaluation_keeper"}
_RECORDS: Mapping[WorkKind, type[Work]] = {"training": TrainingRecord, "evaluation": EvaluationJobRecord}
_ROWS: Mapping[WorkKind, Callable[[Reader, int], Work]] = {
    "training": Reader.training,
    "evaluation": Reader.evaluation_job,
}


def journal_of(kind: WorkKind, number: int, writer: Writer, log: Callable[[str], None] = say) -> Journal:
    """Whose events are those of this work."""
    training, evaluation = (number if kind == each else None for each in ("training", "evaluation"))
    return Journal(writer, log=log, training_id=training, evaluation_id=evaluation)


def start_keeper_of(data_dir: Path, kind: WorkKind, number: int, environ: Mapping[str, str] = os.environ) -> int:
    """Start its keeper; its pid. Where it does not start, the row says so. Raises EngineError, StoreError."""
    try:
        return spawn_keeper(data_dir, kind, number, _MODULES[kind], environ)
    except EngineError as error:
        if not client.is_running(data_dir, kind, number):  # else another was quicker to start one
            with open_writer(database_file(data_dir)) as writer:
                message = redact(clean(str(error), 500))
                writer.update(_RECORDS[kind], number, state="failed", message=message, finished_at=utc_now())
        raise


def stop_work(data_dir: Path, kind: WorkKind, number: int) -> str:
    """Have it stopped; what to tell. Where its keeper is gone, what that left is ended here and now, by the step in
    hand. Raises EngineError, StoreError."""
    try:
        return str(client.call(data_dir, kind, number, "stop")["message"])
    except client.KeeperGone:
        database = database_file(data_dir)
    with only_keeper(data_dir, kind, number), open_writer(database) as writer, open_reader(database) as reader:
        row = _ROWS[kind](reader, number)
        if row.state in OVER and Life.left(row) is None:
            raise LoraError(f"{kind} {number} is {row.state}: there is nothing to stop")
        return asyncio.run(_stop_left(kind, writer, row))


async def _stop_left(kind: WorkKind, writer: Writer, row: Work) -> str:
    assert row.id is not None
    journal = journal_of(kind, row.id, writer, unsaid)
    journal.end_within(0.0)
    said = "nothing worked on it any more"
    if (life := Life.left(row)) is not None:
        said = (await life.end(grace_s=60.0)).summary()
    await journal.event(f"{STOPPED}; {said}")
    await journal.update(_RECORDS[kind], row.id, state="stopped", message=STOPPED, finished_at=utc_now())
    journal.require_all_written()
    return f"stopped; {said}"
