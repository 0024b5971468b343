"""A question that hangs, one that is late; and the GPUs asked that way."""

import asyncio
import threading
import time

import pytest

from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_patience import PatientGpu
from engine.patience import Patient
from tests.engine.fake_nvml import FakeNvml


async def test_an_answer_in_time_a_late_one_and_never_two_at_once() -> None:
    release, asked = threading.Event(), []

    def question() -> int:
        asked.append(1)
        if len(asked) == 2:
            release.wait(10)
        return len(asked)

    patient = Patient(question)
    assert await patient.ask(5) == 1
    assert await patient.ask(0.01) is None
    assert await patient.ask(0.01) is None
    assert len(asked) == 2
    assert patient.waited_s() > 0
    release.set()
    assert await patient.ask(5) == 2
    assert patient.waited_s() == 0
    assert await patient.ask(5) == 3


async def test_being_cancelled_while_it_hangs_leaves_the_question_open() -> None:
    release = threading.Event()
    patient = Patient(lambda: release.wait(10))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(patient.ask(10), 0.02)
    release.set()
    assert await patient.ask(5) is True


async def test_an_nvml_that_hangs_is_one_line_and_comes_back() -> None:
    release = threading.Event()

    class Hanging(FakeNvml):
        def answer_nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
            release.wait(10)
            return 40

    gpus = PatientGpu(GpuReader(Hanging()))
    began = time.monotonic()
    reading = await gpus.read(0.05)
    assert time.monotonic() - began < 1
    assert (reading.gpus, reading.note) == (
        (),
        "GPU not readable: NVML has not answered for 0 s; a GPU may be lost.",
    )
    release.set()
    assert (await gpus.read(5)).gpus[0].temp_c == 40.0
