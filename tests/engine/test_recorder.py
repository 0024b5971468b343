"""Samples: of the right GPUs, kept while the store takes nothing, and never at the price of a result."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from engine.gpus.gpu import GpuReader
from engine.keeper.journal import Journal
from engine.samples.recorder import Recorder, gpu_used
from engine.scrape.http_client import Answer
from store.database import open_reader, open_writer
from store.errors import DamagedStore, StoreFull
from store.reader import Reader
from store.records import SampleRecord, ServerRecord
from store.writer import Writer
from tests.engine.fake_nvml import USED, FakeNvml
from tests.store.examples import a_launch, a_run, a_session

GIB = 2**30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Writer, Reader]]:
    path = tmp_path / "llmtune.db"
    with open_writer(path) as writer, open_reader(path) as reader:
        writer.insert(ServerRecord("s", "ready", "m", "127.0.0.1", 1, [], {}, "", ""))
        yield writer, reader


class Client:
    """A server without a network: its pages come from `page`, which may raise."""

    def __init__(self, page: Callable[[], str] | None = None) -> None:
        self._page = page

    async def get(self, path: str, most: int) -> Answer:
        if self._page is None or path != "/metrics":
            return Answer(404, b"")
        return Answer(200, self._page().encode())

    async def close(self) -> None:
        pass


def recorder(writer: Writer, gpu: GpuReader, **environ: str) -> Recorder:
    return Recorder(Journal(writer, server_id=1), 1, "http://127.0.0.1:1", gpu, environ, client=Client())


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


async def test_progress_stands_still_only_while_there_is_work_and_no_token(store: tuple[Writer, Reader]) -> None:
    writer, _ = store
    now: dict[str, float] = {"running": 1, "tokens": 10}

    def metrics() -> str:
        if now["running"] < 0:
            raise TimeoutError
        label = '{engine="0",model_name="m"}'
        return (
            f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{label} {now['running']}\n"
            f"# TYPE vllm:generation_tokens counter\nvllm:generation_tokens_total{label} {now['tokens']}\n"
        )

    sampling = Recorder(
        Journal(writer, server_id=1),
        1,
        "http://127.0.0.1:1",
        GpuReader(FakeNvml()),
        {},
        client=Client(metrics),
    )

    async def progress() -> object:
        await sampling.take()
        return sampling.progress

    stuck = await progress()
    assert await progress() == stuck
    now["tokens"] = 11
    moved = await progress()
    assert moved != stuck
    now["running"] = -1  # it does not answer any more
    assert await progress() == moved
    now["running"] = 0
    idle = await progress()
    await asyncio.sleep(0.01)
    assert await progress() != idle


async def test_old_samples_are_thinned_while_no_run_is_measured(
    store: tuple[Writer, Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = store
    monkeypatch.setattr("engine.samples.recorder.INTERVAL_S", 0.01)
    writer.insert_samples([SampleRecord(f"2026-11-01T10:00:0{second}.000Z", server_id=1) for second in range(10)])

    def old() -> int:
        return len(reader.samples(until="2026-11-02"))

    session_id = writer.insert(a_session())
    run_id = writer.insert(a_run(session_id, writer.insert(a_launch(session_id))))
    sampling = recorder(writer, GpuReader(FakeNvml()))
    sampling.begin_run(run_id)
    async with sampling:
        await asyncio.sleep(0.1)
        assert (len(reader.samples(run_id=run_id)) > 1, old()) == (True, 10)
        sampling.end_run()
        for _ in range(500):
            if old() == 1:
                break
            await asyncio.sleep(0.01)
    assert reader.samples()[0].raw["thinned"]["samples"] == 10


async def test_what_is_wrong_with_old_samples_does_not_cost_new_ones(
    store: tuple[Writer, Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = store
    monkeypatch.setattr("engine.samples.recorder.INTERVAL_S", 0.01)

    def thin(now: datetime) -> bool:
        raise DamagedStore("a page is gone")

    monkeypatch.setattr(writer, "thin", thin)
    async with recorder(writer, GpuReader(FakeNvml())):
        await asyncio.sleep(0.1)
    assert len(reader.samples(server_id=1)) > 1
    assert [event.text for event in reader.events()] == ["old samples are not thinned any more: a page is gone"]
