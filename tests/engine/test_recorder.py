"""Samples: of the right GPUs, kept while the store takes nothing, and never at the price of a result."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.gpu import GpuReader
from engine.keeper.journal import Journal
from engine.recorder import Recorder, gpu_used
from store.database import open_reader, open_writer
from store.errors import StoreFull
from store.reader import Reader
from store.records import ServerRecord
from store.writer import Writer
from tests.engine.fake_nvml import USED, FakeNvml

GIB = 2**30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Writer, Reader]]:
    path = tmp_path / "llmtune.db"
    with open_writer(path) as writer, open_reader(path) as reader:
        writer.insert(ServerRecord("s", "ready", "m", "127.0.0.1", 1, [], {}, "", ""))
        yield writer, reader


def recorder(writer: Writer, gpu: GpuReader, **environ: str) -> Recorder:
    transport = httpx.MockTransport(lambda request: httpx.Response(404))
    return Recorder(Journal(writer, server_id=1), 1, "http://127.0.0.1:1", gpu, environ, transport=transport)


async def test_only_the_gpus_of_the_server_count(store: tuple[Writer, Reader]) -> None:
    writer, reader = store
    gpu = GpuReader(FakeNvml(count=2))
    async with recorder(writer, gpu, CUDA_VISIBLE_DEVICES="1") as sampling:
        await sampling.take()
    sample = reader.samples(server_id=1)[0]
    assert sample.gpu_mem_used_gib == pytest.approx(USED / GIB)
    assert gpu_used(gpu, {"CUDA_VISIBLE_DEVICES": "1"})() == pytest.approx(USED / GIB)
    assert gpu_used(gpu, {})() == pytest.approx(2 * USED / GIB)


async def test_samples_wait_for_a_full_store_and_are_written_at_the_end(
    store: tuple[Writer, Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = store
    real, refusals = writer.insert_samples, iter([StoreFull("the disk is full")])

    def insert_samples(samples: Any) -> None:
        for refusal in refusals:
            raise refusal
        real(samples)

    monkeypatch.setattr(writer, "insert_samples", insert_samples)
    async with recorder(writer, GpuReader(FakeNvml())):
        await asyncio.sleep(0.1)
        assert reader.samples(server_id=1) == []
    assert len(reader.samples(server_id=1)) == 1


async def test_sampling_that_breaks_is_told(store: tuple[Writer, Reader], monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = store
    sampling = recorder(writer, GpuReader(FakeNvml()))

    async def breaks() -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(sampling, "take", breaks)
    async with sampling:
        await asyncio.sleep(0.05)
    assert [event.text for event in reader.events(server_id=1)] == ["sampling ended early: ZeroDivisionError: a bug"]
