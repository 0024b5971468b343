"""GPUs are read once for all who look in one moment, and hardly where there are none."""

import time

from engine.gpus.gpu_look import GpuLook
from engine.records import GpuReading, GpuSample

AT = "2026-11-30T10:00:00.000Z"


class Reader:
    """A GpuReader that counts how often it is asked."""

    def __init__(self, *gpus: GpuSample) -> None:
        self.asked = 0
        self._gpus = gpus

    def read(self) -> GpuReading:
        self.asked += 1
        return GpuReading(AT, 0.0, self._gpus, note=None if self._gpus else "No GPU.")


def gpu_look(reader: Reader, now: list[float], shared: bool = False) -> GpuLook:
    return GpuLook(reader, shared, lambda: now[0], lambda: f"at {now[0]}")  # type: ignore[arg-type]


async def test_without_a_gpu_nvml_is_not_asked_each_second() -> None:
    reader, now = Reader(), [0.0]
    looking = gpu_look(reader, now)
    for _ in range(25):
        reading = await looking.read(1.0)
        assert reading.note == "No GPU."
        now[0] += 1.0
    assert (reading.at, reading.clock, reader.asked) == ("at 24.0", 24.0, 3)


async def test_gpus_that_answer_late_are_there_at_the_next_look() -> None:
    class Slow(Reader):
        def read(self) -> GpuReading:
            time.sleep(0.1)
            return super().read()

    looking = gpu_look(Slow(GpuSample(0)), [0.0])
    late = await looking.read(0.01)
    assert late.gpus == ()
    assert late.note is not None
    assert "has not answered" in late.note
    assert (await looking.read(5.0)).gpus == (GpuSample(0),)


async def test_servers_looked_at_in_one_moment_share_one_reading_of_the_gpus() -> None:
    reader, now = Reader(GpuSample(0)), [0.0]
    shared, alone = gpu_look(reader, now, shared=True), gpu_look(reader, now)
    for _ in range(3):
        await shared.read(1.0)
        now[0] += 0.05
    assert reader.asked == 1
    now[0] = 1.0
    await shared.read(1.0)
    assert reader.asked == 2
    for _ in range(3):
        await alone.read(1.0)
    assert reader.asked == 5
