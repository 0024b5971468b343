"""Questions that may never be answered, asked from an event loop: a driver call that hangs must not hang us."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Patient(Generic[T]):
    """Asks `question` in a thread, one at a time. The thread is a daemon: one that hangs does not keep the program
    from ending, and is not joined by another."""

    def __init__(self, question: Callable[[], T], clock: Callable[[], float] = time.monotonic) -> None:
        self._question = question
        self._clock = clock
        self._pending: Future[T | None] | None = None
        self._asked_at = 0.0

    async def ask(self, within_s: float) -> T | None:
        """The answer, or None where there is none within that time, or the question broke off. A late answer is given
        to the next who asks."""
        if self._pending is None:
            self._pending, self._asked_at = Future(), self._clock()
            Thread(target=self._answer, args=(self._pending,), daemon=True).start()
        pending = self._pending
        await asyncio.wait({asyncio.wrap_future(pending)}, timeout=within_s)
        if not pending.done():
            return None
        self._pending = None
        return pending.result()

    def waited_s(self) -> float:
        """For how long the question that is open has been; 0 without one."""
        return 0.0 if self._pending is None else self._clock() - self._asked_at

    def _answer(self, future: "Future[T | None]") -> None:
        future.set_running_or_notify_cancel()  # from here on nobody's cancellation reaches it
        answer: T | None = None
        try:
            answer = self._question()
        finally:
            future.set_result(answer)
