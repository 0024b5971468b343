"""Readings of the machine that may fail or never come back: a driver that hangs, a mount whose server is gone."""

import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from engine.records import EngineError
from engine.text import clean, redact
from store.errors import StoreError

T = TypeVar("T")

_EXPECTED = (OSError, ValueError, LookupError, EngineError, StoreError, subprocess.SubprocessError)


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be read, and why in a few words."""

    why: str


class Probe(Generic[T]):
    """One reading in a thread of its own, begun at once. The thread is a daemon: what never comes back, such as a call
    into a dead network mount, does not keep the program from ending."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._answers: queue.SimpleQueue[T | Unread] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        answer: T | Unread = Unread("it broke off")
        try:
            answer = self._read()
        except _EXPECTED as error:
            answer = Unread(clean(redact(str(error)), 200) or type(error).__name__)
        finally:
            self._answers.put(answer)

    def answer(self, deadline: float) -> T | Unread:
        """The reading, waited for until `deadline` (monotonic seconds). To be asked once."""
        try:
            return self._answers.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            return Unread("it did not answer in time")
