"""What the keepers of trainings and evaluations do alike: start a process or take up one that an earlier keeper left,
write what it tells into the row and the history, and see to its end."""

import asyncio
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from engine.keeper.hold import hold
from engine.keeper.journal import GIVE_UP_AFTER_S
from engine.keeper.term import Term, close_row, taken_over, term
from engine.processes.oom_kills import killed_since, oom_kills
from engine.processes.process import boot_id
from engine.records import EngineError
from engine.stop import end_leftovers
from lora.process.outcome import Outcome
from lora.process.process_life import PROGRESS, Life, last_words
from lora.process.progress import ProgressFile
from lora.process.work import STOPPED, Work, WorkKind, journal_of
from lora.records import LoraError
from store.errors import StoreError
from store.records import EventLevel
from store.writer import Writer

LOOK_EVERY_S = 0.5
READ = "progress_bytes"
"""In the raw of a row: how much of the process's file is in the row and its events."""

Line = dict[str, Any]
Said = tuple[str, EventLevel]


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended that runs no more. `exit_code` is None where it was no child of ours, negative for a signal;
    `short_of_memory` says whether the kernel has killed for want of memory meanwhile, None where that cannot be told;
    `last_words` are of its log; `stop_reason` is why it was asked to end, None where it was not."""

    exit_code: int | None
    short_of_memory: bool | None
    last_words: str
    stop_reason: str | None


class ProcessKeeper(ABC):
    """Carries one work out. Commands come in on the socket; all that matters is in the store and in its folder."""

    kind: ClassVar[WorkKind]
    process: ClassVar[str]
    """What to call the process."""
    stop_within_s: ClassVar[float]
    """From the wish to stop until it is ended for certain."""

    def __init__(self, row: Work, folder: Path, log: str, writer: Writer) -> None:
        assert row.id is not None
        self._id: int = row.id
        self._row = row
        self._folder = folder
        self._log = folder / log
        self._journal = journal_of(self.kind, row.id, writer)
        self._file = ProgressFile(folder / PROGRESS)
        self._life: Life | None = None
        self._stop_reason: str | None = None
        self._stop_asked_at: float | None = None
        self._forced = False
        self._oom_before = oom_kills()

    # what the work is

    @abstractmethod
    def start(self) -> "subprocess.Popen[bytes]":
        """Start the process. Raises EngineError, StoreError."""

    @abstractmethod
    def take(self, lines: Sequence[Line]) -> Sequence[Said]:
        """Take in what the process told; what is worth a line of history in it."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Of the row, as they are now; `raw` is what is added to that of the row."""

    @abstractmethod
    def is_complete(self) -> bool:
        """Whether the process has done all that it was to do."""

    @abstractmethod
    async def result(self) -> Outcome:
        """Keep what a complete one has made. Raises EngineError, StoreError."""

    @abstractmethod
    def outcome(self, end: End) -> Outcome:
        """How it ended; `done` where what it has made is to be kept."""

    @abstractmethod
    def at(self) -> str:
        """How far it is: "at step 7"."""

    @abstractmethod
    def begun(self) -> str:
        """The line of history when a process was started."""

    @abstractmethod
    def stopping(self) -> str:
        """What to tell who asked it to stop."""

    # as a keeper

    def commands(self) -> dict[str, Any]:
        return {"status": self._status, "stop": self._stop}

    def terminate(self, reason: str) -> None:
        self._want_stop(reason)

    def take_over(self) -> None:
        """Say that we run, before any command is answered. Raises StoreError where nothing can be written."""
        fields = taken_over(self._row.started_at) | {"boot_id": self._row.boot_id or boot_id()}
        self._journal.writer.update(type(self._row), self._id, **fields)

    async def work(self) -> None:
        outcome = Outcome("failed", "the keeper ended unexpectedly; its log says why")
        try:
            self.take(self._file.read_new(self._row.raw.get(READ, 0)))  # what is in the history already
            await self._look()  # what was told while nobody kept it
            outcome = await self._carry_out()
        except (EngineError, StoreError) as error:
            outcome = Outcome("failed", str(error))
        finally:
            try:
                if self._life is not None and self._life.running():
                    await self._life.end()
            finally:
                await close_row(self._journal, type(self._row), self._id, outcome.state, outcome.message)

    async def _carry_out(self) -> Outcome:
        self._life = Life.left(self._row)
        if self._life is not None:
            pid = self._life.identity.pid
            await self._journal.event(f"follows the {self.process} that went on alone, process {pid}, {self.at()}")
        elif self.is_complete():
            return await self.result()  # only that was left to do
        else:
            await end_leftovers(None, None, self._row.marker, [])
            await self._begin()
        code = await self._watched()
        short = killed_since(self._oom_before, oom_kills())
        outcome = self.outcome(End(code, short, last_words(self._log), self._stop_reason))
        return await self.result() if outcome.state == "done" else outcome

    async def _begin(self) -> None:
        process = self.start()
        self._life = Life.of_child(process, self._row.marker)
        if self._life is None:
            said = last_words(self._log) or f"status {process.wait()}"
            raise LoraError(f"the {self.process} ended at once: {said}")
        identity = self._life.identity
        fields = {"pid": identity.pid, "start_ticks": identity.start_ticks, "boot_id": identity.boot_id}
        await self._journal.update(type(self._row), self._id, **fields)
        if self._stop_reason is not None:  # asked for before there was a process
            self._life.ask_to_stop()
        await self._journal.event(self.begun())

    async def _watched(self) -> int | None:
        """Until the process has ended; its exit code."""
        assert self._life is not None
        while self._life.running():
            await self._look()
            if self._stop_asked_at is not None and (
                self._forced or time.monotonic() - self._stop_asked_at > self.stop_within_s
            ):
                await self._life.end()
            await asyncio.sleep(LOOK_EVERY_S)
        await self._look()
        await end_leftovers(None, None, self._row.marker, [])
        return self._life.exit_code

    async def _look(self) -> None:
        """Write what the process has told since the last look."""
        lines = self._file.read_new()
        if not lines:
            return
        for text, level in self.take(lines):
            await self._journal.event(text, level)
        fields = self.fields()
        raw = {**self._row.raw, READ: self._file.offset, **fields.pop("raw")}
        self._journal.note(type(self._row), self._id, **fields, raw=raw)

    def _want_stop(self, reason: str) -> None:
        if self._stop_reason is not None:
            self._forced = True
            return
        self._stop_reason, self._stop_asked_at = reason, time.monotonic()
        self._journal.end_within(GIVE_UP_AFTER_S)  # a store that takes nothing is waited for no longer
        if self._life is not None:
            self._life.ask_to_stop()

    async def _status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"blocked": self._journal.blocked, "at": self.at(), "stopping": self._stop_reason}

    async def _stop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        again = self._stop_reason is not None
        self._want_stop(STOPPED)
        return {"message": "ends at once; what was kept before stays" if again else self.stopping()}


async def keep_work(data_dir: Path, kind: WorkKind, number: int, make: Callable[[Term], ProcessKeeper]) -> None:
    """Be its keeper until it has ended."""
    with term(data_dir, kind, number) as ours:
        keeper = make(ours)
        keeper.take_over()
        await hold(keeper, ours.socket)
