"""A keeper's writes to the store: those that must not be lost are tried until the store takes them."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from store.clock import utc_now
from store.errors import ReadOnlyStore, StoreError, StoreFull, StoreLocked
from store.records import EventLevel, EventRecord
from store.writer import Writer

T = TypeVar("T")

# What can pass: space comes back, a lock is dropped, a mount returns. A damaged or newer database does not pass.
PASSING = (StoreFull, StoreLocked, ReadOnlyStore)
TRY_AGAIN_S = 5.0


class Journal:
    """`blocked` is the one line that says why the store takes nothing now, or None.

    `session_id` and `server_id` are stamped on the events.
    """

    def __init__(self, writer: Writer, session_id: int | None = None, server_id: int | None = None) -> None:
        self.blocked: str | None = None
        self.writer = writer
        self._session_id = session_id
        self._server_id = server_id

    async def insert(self, record: Any) -> int:
        return await self._until_taken(lambda: self.writer.insert(record))

    async def update(self, kind: type[Any], number: int, **fields: Any) -> None:
        await self._until_taken(lambda: self.writer.update(kind, number, **fields))

    async def event(self, text: str, level: EventLevel = "info", server_id: int | None = None) -> None:
        print(f"{utc_now()} {level}: {text}", flush=True)  # the keeper's own log
        record = EventRecord(
            at=utc_now(), level=level, text=text, session_id=self._session_id, server_id=server_id or self._server_id
        )
        await self.insert(record)

    def note(self, kind: type[Any], number: int, **fields: Any) -> None:
        """Write what a later write will repeat, such as a stage of a start; a refusal is noted in the log alone."""
        try:
            self.writer.update(kind, number, **fields)
        except StoreError as error:
            print(f"{utc_now()} warning: not written now: {error}", flush=True)

    async def _until_taken(self, write: Callable[[], T]) -> T:
        while True:
            try:
                taken = write()
            except PASSING as error:
                if self.blocked is None:
                    print(f"{utc_now()} warning: waiting for the store: {error}", flush=True)
                self.blocked = str(error)
                await asyncio.sleep(TRY_AGAIN_S)
            else:
                self.blocked = None
                return taken
