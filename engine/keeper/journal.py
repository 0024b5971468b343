"""A keeper's writes to the store: tried until the store takes them, or until the keeper is to end."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from engine.text import redact
from store.clock import utc_now
from store.errors import ReadOnlyStore, StoreError, StoreFull, StoreLocked
from store.records import EventLevel, EventRecord
from store.writer import Writer

T = TypeVar("T")

# What can pass: space comes back, a lock is dropped, a mount returns. A damaged or newer database does not pass.
PASSING = (StoreFull, StoreLocked, ReadOnlyStore)
TRY_AGAIN_S = 5.0
GIVE_UP_AFTER_S = 10.0
# A write holds the keeper's loop up while another program has the file: it must be over before an asker gives up.
KEEPER_PATIENCE_S = 5.0
# Fields of rows that are told in words, which may be those of a server or an error.
TOLD = ("failure", "reason", "message")


def say(text: str) -> None:
    """A line in the keeper's own log, its standard output. The disk that is full for the store is full for the log
    too, and that must not end the keeper."""
    with contextlib.suppress(OSError):
        os.write(1, f"{utc_now()} {redact(text)}\n".encode(errors="backslashreplace"))


def unsaid(text: str) -> None:
    """The log of a journal outside a keeper, where standard output is the person's screen."""


class Journal:
    """`blocked` is the one line that says why the store takes nothing now, or None; `lost` says what was given up.

    Secrets in what is told are hidden. `session_id`, `server_id`, `training_id` and `evaluation_id` are stamped on the
    events; what happens goes to `log` too. Where the store says what does not pass, StoreError comes through. The
    writer should have been opened with KEEPER_PATIENCE_S.
    """

    def __init__(
        self,
        writer: Writer,
        session_id: int | None = None,
        server_id: int | None = None,
        log: Callable[[str], None] = say,
        training_id: int | None = None,
        evaluation_id: int | None = None,
    ) -> None:
        self.blocked: str | None = None
        self.lost: list[str] = []
        self.writer = writer
        self._log = log
        self._session_id = session_id
        self._server_id = server_id
        self._training_id = training_id
        self._evaluation_id = evaluation_id
        self._deadline: float | None = None
        self._ending = asyncio.Event()

    def end_within(self, seconds: float = GIVE_UP_AFTER_S) -> None:
        """The keeper is to end: after `seconds` what the store refuses is tried once and then given up."""
        if self._deadline is None:
            self._deadline = time.monotonic() + seconds
            self._ending.set()

    def require_all_written(self) -> None:
        """Raises StoreError, with the store's reason, where something was given up."""
        if self.lost:
            raise StoreError(self.blocked or f"not written: {', '.join(self.lost)}")

    async def insert(self, record: Any) -> int:
        """The new row's id. Raises the store's refusal once it is given up: without an id nothing can go on."""
        return await self._until_taken(lambda: self.writer.insert(record), f"a new {_table(type(record))}")

    async def update(self, kind: type[Any], number: int, **fields: Any) -> None:
        """Returns when it is written, or given up."""
        fields |= {name: redact(fields[name]) for name in TOLD if fields.get(name)}
        state = f" {fields['state']}" if "state" in fields else ""
        with contextlib.suppress(*PASSING):
            await self._until_taken(
                lambda: self.writer.update(kind, number, **fields), f"{_table(kind)} {number}{state}"
            )

    async def event(self, text: str, level: EventLevel = "info", server_id: int | None = None) -> None:
        """Returns when it is written, or given up; it stands in the keeper's log in any case."""
        self._log(f"{level}: {text}")
        record = EventRecord(
            at=utc_now(),
            level=level,
            text=redact(text),
            session_id=self._session_id,
            server_id=server_id or self._server_id,
            training_id=self._training_id,
            evaluation_id=self._evaluation_id,
        )
        with contextlib.suppress(*PASSING):
            await self._until_taken(lambda: self.writer.insert(record), "an event")

    def note(self, kind: type[Any], number: int, **fields: Any) -> None:
        """Write what a later write will repeat, such as a stage of a start; a refusal is noted in the log alone."""
        try:
            self.writer.update(kind, number, **fields)
        except StoreError as error:
            self._log(f"warning: not written now: {error}")

    async def _until_taken(self, write: Callable[[], T], what: str) -> T:
        while True:
            try:
                taken = write()
            except PASSING as error:
                if self.blocked is None:
                    self._log(f"warning: waiting for the store: {error}")
                self.blocked = str(error)
                if self._deadline is not None and time.monotonic() >= self._deadline:
                    self._log(f"error: given up, not written: {what}: {error}")
                    self.lost.append(what)
                    raise
                await self._before_next_try()
            else:
                self.blocked = None
                return taken

    async def _before_next_try(self) -> None:
        if self._deadline is not None:
            await asyncio.sleep(min(TRY_AGAIN_S, max(self._deadline - time.monotonic(), 0.0)))
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), TRY_AGAIN_S)


def _table(kind: type[Any]) -> str:
    return kind.__name__.removesuffix("Record").lower()
