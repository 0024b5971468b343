"""One reading of the GPUs for all servers of this machine that are looked at in the same moment."""

import threading
import time

from engine.gpu import GpuReader
from engine.records import GpuReading
from store.clock import utc_now

FRESH_S = 0.2


class SharedGpus(GpuReader):
    """Reads at most five times a second, whoever asks."""

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = threading.Lock()
        self._kept: GpuReading | None = None

    def read(self) -> GpuReading:
        with self._one_at_a_time:
            kept = self._kept
            if kept is None or time.monotonic() - kept.clock > FRESH_S:
                kept = self._kept = super().read()
            return kept


class NoGpus(GpuReader):
    """For a server of another machine: this one's GPUs say nothing about it."""

    def __init__(self, note: str) -> None:
        super().__init__()
        self._note = note

    def read(self) -> GpuReading:
        return GpuReading(utc_now(), time.monotonic(), note=self._note)
