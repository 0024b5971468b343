"""The keeper of one training: `python -m lora.keeper DATA_DIR TRAINING_ID`.

It starts the trainer, or takes up one that an earlier keeper left, writes what it tells, and registers its adapter.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.keeper.term import run_keeper
from engine.records import EngineError
from lora.adapters.registry import register
from lora.process.outcome import Outcome, events_of, may_go_on, origin_of, outcome_of
from lora.process.process_keeper import End, Line, ProcessKeeper, Said, keep_work
from lora.process.process_life import start_script
from lora.process.progress import Progress, told
from lora.records import LoraError
from lora.trainings.training import dataset_folder, python_of, settings_of, training_folder
from lora.trainings.training_life import ADAPTER, LOG, SCRIPT, STOP_WITHIN_S, job_of
from store.errors import StoreError
from store.reader import Reader
from store.records import TrainingRecord
from store.writer import Writer


class TrainingKeeper(ProcessKeeper):
    """Carries one training out."""

    kind = "training"
    process = "trainer"
    stop_within_s = STOP_WITHIN_S

    def __init__(self, data_dir: Path, training: TrainingRecord, writer: Writer, reader: Reader) -> None:
        super().__init__(training, training_folder(data_dir, training), LOG, writer)
        self._data_dir = data_dir
        self._training = training
        self._reader = reader
        self._progress = Progress()

    def start(self) -> "subprocess.Popen[bytes]":
        dataset = self._reader.dataset(self._training.dataset_id)
        training = replace(self._training, seconds=self._progress.seconds)
        job = job_of(training, self._folder, dataset_folder(self._data_dir, dataset), settings_of(training))
        self._progress = replace(self._progress, end=None, ending={}, pace=())
        return start_script(SCRIPT, self._folder, LOG, job, python_of(training), training.marker, os.environ)

    def take(self, lines: Sequence[Line]) -> Sequence[Said]:
        said = events_of(self._progress, lines)
        for line in lines:
            self._progress = told(self._progress, line)
        return said

    def fields(self) -> dict[str, Any]:
        now = self._progress
        return {
            "step": now.step,
            "steps": now.steps,
            "loss": now.loss,
            "eval_loss": now.eval_loss,
            "seconds": now.seconds,
            "checkpoint": now.checkpoint,
            "environment": {key: now.plan.get(key) for key in ("device", "dtype", "versions")} if now.plan else {},
            "raw": {
                "plan": now.plan,
                "live": {**now.live, "seconds_left": now.seconds_left},
                "curve": [[step, round(loss, 5)] for step, loss in now.curve.shown],
                "evals": [[step, round(loss, 5)] for step, loss in now.evals],
            },
        }

    def at(self) -> str:
        return f"at step {self._progress.step}"

    def begun(self) -> str:
        return "resumed" if self._progress.checkpoint else "started"

    def stopping(self) -> str:
        return "stopping after the step in hand, with a checkpoint"

    def is_complete(self) -> bool:
        return self._progress.end == "done" and (self._folder / ADAPTER).is_dir()

    def outcome(self, end: End) -> Outcome:
        ended = outcome_of(self._progress, end.exit_code, end.short_of_memory, end.last_words, end.stop_reason)
        if ended.state == "failed" and may_go_on(self._progress):
            more = f"`llmtune lora resume {self._id}` goes on from its checkpoint"
            return replace(ended, message=f"{ended.message}; {more}")
        return ended

    async def result(self) -> Outcome:
        """Register the adapter."""
        origin = origin_of(self._training, self._progress)
        name = self._training.adapter_name
        try:
            kept = await asyncio.to_thread(
                register, self._journal.writer, self._data_dir, self._folder / ADAPTER, name, origin
            )
        except (EngineError, StoreError) as error:
            raise LoraError(
                f"it is trained, but its adapter is not kept: {error}; `llmtune lora resume {self._id}` tries again"
            ) from error
        how = "is registered as" if kept.new else "is the same as"
        await self._journal.event(f"the adapter {how} {kept.adapter.label}")
        return Outcome("done", f"adapter {kept.adapter.label}")


async def keep(data_dir: Path, number: int) -> None:
    await keep_work(
        data_dir,
        "training",
        number,
        lambda ours: TrainingKeeper(data_dir, ours.reader.training(number), ours.writer, ours.reader),
    )


if __name__ == "__main__":
    sys.exit(run_keeper(keep))
