"""The keeper of one training: `python -m lora.keeper DATA_DIR TRAINING_ID`.

It starts the trainer, or takes up one that an earlier keeper left, writes what it tells, and registers its adapter.
"""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.keeper.hold import hold
from engine.keeper.journal import GIVE_UP_AFTER_S, Journal
from engine.keeper.term import close_row, run_keeper, taken_over, term
from engine.processes.oom_kills import killed_since, oom_kills
from engine.processes.process import boot_id
from engine.records import EngineError
from engine.stop import end_leftovers
from lora.outcome import Outcome, events_of, may_go_on, origin_of, outcome_of
from lora.progress import Progress, ProgressFile, told
from lora.records import LoraError
from lora.registry import register
from lora.training import STOPPED, dataset_folder, python_of, settings_of, training_folder
from lora.training_life import ADAPTER, PROGRESS, STOP_WITHIN_S, Life, job_of, last_words, start_trainer
from store.errors import StoreError
from store.reader import Reader
from store.records import TrainingRecord
from store.writer import Writer

LOOK_EVERY_S = 0.5
READ = "progress_bytes"
"""In a training's raw: how much of the trainer's file is in its row and its events."""


class TrainingKeeper:
    """Carries one training out. Commands come in on the socket; all that matters is in the store and in its folder."""

    def __init__(self, data_dir: Path, training: TrainingRecord, writer: Writer, reader: Reader) -> None:
        assert training.id is not None
        self._data_dir = data_dir
        self._id: int = training.id
        self._training = training
        self._reader = reader
        self._journal = Journal(writer, training_id=training.id)
        self._folder = training_folder(data_dir, training)
        self._file = ProgressFile(self._folder / PROGRESS)
        self._progress = Progress()
        self._life: Life | None = None
        self._stop_reason: str | None = None
        self._stop_asked_at: float | None = None
        self._forced = False
        self._oom_before = oom_kills()

    def commands(self) -> dict[str, Any]:
        return {"status": self._status, "stop": self._stop}

    def terminate(self, reason: str) -> None:
        self._want_stop(reason)

    def take_over(self) -> None:
        """Say that we run, before any command is answered. Raises StoreError where nothing can be written."""
        fields = taken_over(self._training.started_at)
        self._journal.writer.update(TrainingRecord, self._id, **fields, boot_id=self._training.boot_id or boot_id())

    async def work(self) -> None:
        outcome = Outcome("failed", "the keeper ended unexpectedly; its log says why")
        try:
            self._fold(self._training.raw.get(READ, 0))  # what is in the history already
            await self._look()  # what a trainer told while nobody kept it
            outcome = await self._carry_out()
        except (EngineError, StoreError) as error:
            outcome = Outcome("failed", str(error))
        finally:
            try:
                if self._life is not None and self._life.running():
                    await self._life.end()
            finally:
                await close_row(self._journal, TrainingRecord, self._id, outcome.state, outcome.message)

    async def _carry_out(self) -> Outcome:
        self._life = Life.left(self._training)
        if self._life is not None:
            pid, step = self._life.identity.pid, self._progress.step
            await self._journal.event(f"follows the trainer that went on alone, process {pid}, at step {step}")
        elif self._progress.end == "done" and (self._folder / ADAPTER).is_dir():
            return await self._registered()  # only that was left to do
        else:
            await end_leftovers(None, None, self._training.marker, [])
            await self._begin()
        code = await self._watched()
        short = killed_since(self._oom_before, oom_kills())
        ended = outcome_of(self._progress, code, short, last_words(self._folder), self._stop_reason)
        if ended.state == "done":
            return await self._registered()
        if ended.state == "failed" and may_go_on(self._progress):
            ended = replace(
                ended, message=f"{ended.message}; `llmtune lora resume {self._id}` goes on from its checkpoint"
            )
        return ended

    async def _begin(self) -> None:
        dataset = self._reader.dataset(self._training.dataset_id)
        training = replace(self._training, seconds=self._progress.seconds)
        job = job_of(training, self._folder, dataset_folder(self._data_dir, dataset), settings_of(training))
        self._progress = replace(self._progress, end=None, ending={}, pace=())
        process = start_trainer(self._folder, job, python_of(training), training.marker, os.environ)
        self._life = Life.of_child(process, training.marker)
        if self._life is None:
            raise LoraError(f"the trainer ended at once: {last_words(self._folder) or f'status {process.wait()}'}")
        identity = self._life.identity
        await self._journal.update(
            TrainingRecord, self._id, pid=identity.pid, start_ticks=identity.start_ticks, boot_id=identity.boot_id
        )
        if self._stop_reason is not None:  # asked for before there was a trainer
            self._life.ask_to_stop()
        await self._journal.event("resumed" if self._progress.checkpoint else "started")

    async def _watched(self) -> int | None:
        """Until the trainer has ended; its exit code."""
        assert self._life is not None
        while self._life.running():
            await self._look()
            if self._stop_asked_at is not None and (
                self._forced or time.monotonic() - self._stop_asked_at > STOP_WITHIN_S
            ):
                await self._life.end()
            await asyncio.sleep(LOOK_EVERY_S)
        await self._look()
        await end_leftovers(None, None, self._training.marker, [])
        return self._life.exit_code

    async def _look(self) -> None:
        """Write what the trainer has told since the last look."""
        before = self._progress
        lines = self._fold()
        if not lines:
            return
        for text, level in events_of(before, lines):
            await self._journal.event(text, level)
        now = self._progress
        self._journal.note(
            TrainingRecord,
            self._id,
            step=now.step,
            steps=now.steps,
            loss=now.loss,
            eval_loss=now.eval_loss,
            seconds=now.seconds,
            checkpoint=now.checkpoint,
            raw=self._raw(),
            **({"environment": self._environment()} if now.plan is not before.plan else {}),
        )

    def _fold(self, until: int | None = None) -> list[dict[str, Any]]:
        lines = self._file.read_new(until)
        for line in lines:
            self._progress = told(self._progress, line)
        return lines

    def _raw(self) -> dict[str, Any]:
        now = self._progress
        return {
            **self._training.raw,
            READ: self._file.offset,
            "plan": now.plan,
            "live": {**now.live, "seconds_left": now.seconds_left},
            "curve": [[step, round(loss, 5)] for step, loss in now.curve.shown],
            "evals": [[step, round(loss, 5)] for step, loss in now.evals],
        }

    def _environment(self) -> dict[str, Any]:
        plan = self._progress.plan
        return {key: plan.get(key) for key in ("device", "dtype", "versions")}

    async def _registered(self) -> Outcome:
        origin = origin_of(self._training, self._progress)
        name = self._training.adapter_name
        try:
            kept = await asyncio.to_thread(
                register, self._journal.writer, self._data_dir, self._folder / ADAPTER, name, origin
            )
        except (LoraError, StoreError) as error:
            raise LoraError(
                f"it is trained, but its adapter is not kept: {error}; `llmtune lora resume {self._id}` tries again"
            ) from error
        how = "is registered as" if kept.new else "is the same as"
        await self._journal.event(f"the adapter {how} {kept.adapter.label}")
        return Outcome("done", f"adapter {kept.adapter.label}")

    def _want_stop(self, reason: str) -> None:
        if self._stop_reason is not None:
            self._forced = True
            return
        self._stop_reason, self._stop_asked_at = reason, time.monotonic()
        self._journal.end_within(GIVE_UP_AFTER_S)  # a store that takes nothing is waited for no longer
        if self._life is not None:
            self._life.ask_to_stop()

    async def _status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        now = self._progress
        return {"blocked": self._journal.blocked, "step": now.step, "steps": now.steps, "stopping": self._stop_reason}

    async def _stop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        again = self._stop_reason is not None
        self._want_stop(STOPPED)
        if again:
            return {"message": "ends at once; the newest checkpoint stays"}
        return {"message": "stopping after the step in hand, with a checkpoint"}


async def keep(data_dir: Path, training_id: int) -> None:
    with term(data_dir, "training", training_id) as ours:
        keeper = TrainingKeeper(data_dir, ours.reader.training(training_id), ours.writer, ours.reader)
        keeper.take_over()
        await hold(keeper, ours.socket)


if __name__ == "__main__":
    sys.exit(run_keeper(keep))
