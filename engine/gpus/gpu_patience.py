"""GPU readings for an event loop. A GPU that fell off the bus can hold NVML for minutes; the server is sampled on."""

import time

from engine.gpus.gpu import GpuReader
from engine.patience import Patient
from engine.records import GpuReading
from store.clock import utc_now


class PatientGpu:
    """`read` never takes longer than it is given; a reading that comes late is the next one's."""

    def __init__(self, reader: GpuReader) -> None:
        self._asked = Patient(reader.read)

    @property
    def waits(self) -> bool:
        """Whether NVML has been asked and has not answered yet."""
        return self._asked.waited_s() > 0

    async def read(self, within_s: float) -> GpuReading:
        """All GPUs now, or none and a note for how long NVML has not answered."""
        if (reading := await self._asked.ask(within_s)) is not None:
            return reading
        waited = self._asked.waited_s()
        return GpuReading(
            utc_now(),
            time.monotonic(),
            note=f"GPU not readable: NVML has not answered for {waited:.0f} s; a GPU may be lost.",
        )
