"""GPU readings for those who look often: one for all who ask in one moment, none where there is nothing to read."""

import time
from collections.abc import Callable
from dataclasses import replace

from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_patience import PatientGpu
from engine.records import GpuReading
from store.clock import utc_now

NONE_AGAIN_S = 10.0  # a driver may be loaded or come back; asking for it each second would only start threads
AT_ONCE_S = 0.2  # less than the shortest interval


class GpuLook:
    """Readings of one GpuReader, which stays the caller's. With `shared` several servers that are looked at in the same
    moment get one reading; without it each look has its own, so that the edges of a run are exact."""

    def __init__(
        self,
        reader: GpuReader,
        shared: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self._patient = PatientGpu(reader)
        self._shared = shared
        self._clock = clock
        self._now = now
        self._newest: GpuReading | None = None
        self._read_at = 0.0

    async def read(self, within_s: float) -> GpuReading:
        """All GPUs now, or a reading without any and a note why."""
        newest, age = self._newest, self._clock() - self._read_at
        if newest is not None and not newest.gpus and age < NONE_AGAIN_S:
            return replace(newest, at=self._now(), clock=self._clock())
        if newest is not None and self._shared and age < AT_ONCE_S:
            return newest
        reading = await self._patient.read(within_s)
        # What is still to come is not that there is none.
        self._newest, self._read_at = None if self._patient.waits else reading, self._clock()
        return reading
