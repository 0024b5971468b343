"""What a person has asked of a running sweep, as the sweep sees it."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """What was in hand was cut short because a person asked for it; `what` is "stop" or "skip"."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Controls:
    """Pause, stop and skip. Everything happens on the keeper's event loop, so nothing is locked.

    A pause lets the run in hand finish; a stop and a skip of the candidate in hand cut it short.
    """

    def __init__(self) -> None:
        self.stop_reason: str | None = None
        self.current_candidate: int | None = None
        self.skipped: set[int] = set()
        self._paused = False
        self._changed = asyncio.Event()
        self._cut = asyncio.Event()

    @property
    def paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        self._paused = True
        self._changed.set()

    def resume(self) -> None:
        self._paused = False
        self._changed.set()

    def stop(self, reason: str) -> None:
        """End the sweep. Of several reasons the first stands."""
        if self.stop_reason is None:
            self.stop_reason = reason
        self._changed.set()
        self._cut.set()

    def skip(self, candidate: int) -> None:
        self.skipped.add(candidate)
        self._changed.set()
        if candidate == self.current_candidate:
            self._cut.set()

    def begin(self, candidate: int | None) -> None:
        """From now on `skip` of this candidate cuts short what is in hand."""
        self.current_candidate = candidate
        if self.stop_reason is None:
            self._cut.clear()

    def check(self) -> None:
        """Raise Interrupted if a stop, or a skip of the candidate in hand, has been asked for."""
        if self.stop_reason is not None:
            raise Interrupted("stop")
        if self.current_candidate in self.skipped:
            raise Interrupted("skip")

    async def while_paused(self) -> None:
        """Return when not paused. Raises Interrupted when stopped or skipped meanwhile."""
        while self._paused:
            self.check()
            self._changed.clear()
            await self._changed.wait()
        self.check()

    async def or_cut(self, work: Awaitable[T]) -> T:
        """The result of `work`, or Interrupted once it has been cancelled because of a stop or skip."""
        task = asyncio.ensure_future(work)
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cut.cancel()
            task.cancel()
            await asyncio.wait({task, cut})
        if task.cancelled():
            self.check()
        return task.result()
