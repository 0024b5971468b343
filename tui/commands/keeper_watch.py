"""Whether a keeper has gone for good while its work is being followed."""

import time
from collections.abc import Callable
from pathlib import Path

from engine.keeper.client import is_running
from engine.keeper.places import KeeperKind

GRACE_S = 10.0


class KeeperWatch:
    """The keeper of one session or server, from now on."""

    def __init__(
        self, place: Path, kind: KeeperKind, number: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._keeper = (place, kind, number)
        self._monotonic = monotonic
        self._seen_at = monotonic()

    def gone(self) -> bool:
        """Whether none was seen for ten seconds: one that was just started needs a moment to take its lock."""
        now = self._monotonic()
        if is_running(*self._keeper):
            self._seen_at = now
        return now - self._seen_at > GRACE_S
