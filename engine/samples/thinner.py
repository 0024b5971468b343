"""Old samples of the store, thinned a few at a time beside the writing of new ones (store.thinning says which)."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

from engine.keeper.journal import PASSING, TRY_AGAIN_S
from store.errors import StoreError
from store.writer import Writer

EVERY_S = 10.0


class Thinner:
    """For whoever writes samples for hours. `clock` counts seconds."""

    def __init__(self, writer: Writer, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._clock = clock
        self._next = 0.0

    def some(self) -> None:
        """Thin some, if it is time: at once while there are more, then every EVERY_S.

        What the store cannot take now is left for a later time. Raises StoreError for what does not pass, once: then
        nothing more is tried.
        """
        if self._clock() < self._next:
            return
        self._next = math.inf
        try:
            more = self._writer.thin(datetime.now(UTC))
        except PASSING:
            self._next = self._clock() + TRY_AGAIN_S
        else:
            self._next = 0.0 if more else self._clock() + EVERY_S


def not_any_more(error: StoreError) -> str:
    """What is said where `some` has given up: new samples are kept all the same."""
    return f"old samples are not thinned any more: {error}"
