"""Looks on a beat: one an interval whatever the server does, and figures of the right stretch of time. In real time: it
is the beat itself that is held against the clock."""

import asyncio
import re
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest

from engine.gpus.gpu_look import GpuLook
from engine.records import GpuReading, ServerSample
from engine.samples.beat import GRAINS, Look, Past, looks
from engine.samples.sampler import Sampler
from store.clock import utc_now
from tests.lying_exporter import LyingExporter

EVERY_S = 0.3  # so long that a busy machine answers within


class NoGpu:
    def read(self) -> GpuReading:
        return GpuReading(utc_now(), 0.0, note="No GPU.")


@asynccontextmanager
async def followed(exporter: LyingExporter, every_s: float = EVERY_S) -> AsyncIterator[AsyncIterator[Look]]:
    gpu = GpuLook(NoGpu(), shared=True)  # type: ignore[arg-type]
    async with Sampler(exporter.url, gpu) as sampler, aclosing(looks(sampler, gpu, every_s)) as stream:
        yield stream


async def answered(stream: AsyncIterator[Look]) -> None:
    """Wait for the first answer: the first look asks for the version too, and a busy machine may miss its interval."""
    while (await anext(stream)).server is None:
        pass


def straying(moments: list[float]) -> float:
    """How far moments lie from a beat, typically: the median distance in time to that of their beats that fits best."""

    def distances(reference: float) -> list[float]:
        phases = [(moment - reference) % EVERY_S for moment in moments]
        return [min(phase, EVERY_S - phase) for phase in phases]

    return min(statistics.median(distances(moment)) for moment in moments)


async def test_the_beat_neither_drifts_nor_waits_for_who_takes_the_looks() -> None:
    async with LyingExporter() as exporter, followed(exporter) as stream:
        await answered(stream)
        moments = []
        for _ in range(9):
            await anext(stream)
            moments.append(time.monotonic())
            await asyncio.sleep(0.45 * EVERY_S)
    assert moments[-1] - moments[0] > 7.5 * EVERY_S
    # A beat that drifted by what the taker sleeps would stray over the whole interval: by a quarter of it.
    assert straying(moments) < 0.15 * EVERY_S


async def test_intervals_that_were_overrun_are_left_out() -> None:
    async with LyingExporter() as exporter, followed(exporter) as stream:
        await answered(stream)
        asked = exporter.asked.count("/metrics")
        await asyncio.sleep(3.5 * EVERY_S)
        began = time.monotonic()
        for _ in range(3):
            await anext(stream)
        assert time.monotonic() - began > 1.2 * EVERY_S  # not all at once
        assert exporter.asked.count("/metrics") <= asked + 3


async def test_a_server_that_hangs_has_a_look_an_interval_and_one_request() -> None:
    async with LyingExporter() as exporter, followed(exporter) as stream:
        await answered(stream)
        asked = exporter.asked.count("/metrics")
        exporter.behave("hang")
        began = time.monotonic()
        for _ in range(5):
            server, gpu, error = await anext(stream)
            assert (server, gpu.note) == (None, "No GPU.")
            assert error is not None
            assert "has not answered for " in error
        assert time.monotonic() - began > 4 * EVERY_S
        assert exporter.asked.count("/metrics") == asked + 1


async def test_an_answer_that_comes_late_counts_when_it_comes() -> None:
    async with LyingExporter() as exporter, followed(exporter) as stream:
        await answered(stream)
        exporter.delay_s = 2.4 * EVERY_S
        exporter.behave("slow")
        asked = exporter.asked.count("/metrics")
        assert (await anext(stream)).server is None
        while (await anext(stream)).server is None:
            assert exporter.asked.count("/metrics") == asked + 1


async def test_death_and_return() -> None:
    async with LyingExporter() as exporter, followed(exporter) as stream:
        await answered(stream)
        exporter.behave("refuse")
        while "Nothing answers" not in ((await anext(stream)).error or ""):
            pass
        exporter.behave("answer")
        await answered(stream)


async def test_giving_up_ends_the_request_too() -> None:
    async with LyingExporter(behaviour="hang") as exporter:
        async with followed(exporter) as stream:
            await anext(stream)
            assert exporter.open == 1
        await asyncio.sleep(0.05)
        assert exporter.open == 0


def sample(clock: float, tokens: float = 0.0) -> ServerSample:
    return ServerSample(at="", clock=clock, generation_tokens=tokens)


def test_without_a_window_figures_are_those_since_the_last_answer() -> None:
    past = Past()
    assert past.take(sample(0.0)) is None
    assert past.take(sample(1.0)) == sample(0.0)
    assert past.take(sample(9.0)) == sample(1.0)  # it did not answer in between


def test_with_a_window_figures_are_those_of_the_window() -> None:
    past = Past(10.0)
    counted = [past.take(sample(float(second))) for second in range(30)]
    assert [one.clock if one else None for one in counted[:3]] == [None, 0.0, 0.0]
    assert [one.clock for one in counted[11:] if one] == [float(second) for second in range(1, 19 + 1)]


def test_a_long_window_of_short_intervals_keeps_few_samples() -> None:
    past = Past(60.0)
    for tick in range(6000):
        before = past.take(sample(tick / 10))
        if tick > 700 and before is not None:
            assert 59.9 <= tick / 10 - before.clock <= 61.5
    assert len(past._kept) <= GRAINS + 3


def test_after_a_restart_figures_begin_anew() -> None:
    past = Past(10.0)
    past.take(sample(0.0, 100.0))
    past.take(sample(1.0, 200.0))
    assert past.take(sample(2.0, 5.0)) == sample(1.0, 200.0)  # which says that it restarted
    assert past.take(sample(3.0, 9.0)) == sample(2.0, 5.0)
    assert past.take(replace(sample(4.0, 11.0))) == sample(2.0, 5.0)


async def test_silence_is_counted_over_requests_that_were_given_up_and_time_never_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_up_s = 2.2 * EVERY_S
    monkeypatch.setattr("engine.samples.beat.TIMEOUT_S", given_up_s)
    monkeypatch.setattr("engine.samples.sampler.TIMEOUT_S", given_up_s)

    def waited(look: Look) -> list[float]:
        return [float(said) for said in re.findall(r"has not answered for ([\d.]+) s", look.error or "")]

    async with LyingExporter() as exporter, followed(exporter) as stream:
        while (await anext(stream)).server is None:
            pass
        exporter.behave("hang")
        hung = [await anext(stream) for _ in range(10)]
        assert sum("did not answer within" in (look.error or "") for look in hung) >= 2
        seconds = [said for look in hung for said in waited(look)]
        assert seconds == sorted(seconds)
        assert seconds[-1] > 2 * given_up_s
        moments = [look.gpu.at for look in hung]
        assert moments == sorted(moments)
        exporter.behave("refuse")
        while "Nothing answers" not in ((await anext(stream)).error or ""):
            pass
        exporter.behave("hang")
        while not (again := waited(await anext(stream))):
            pass
        assert again[0] < 2 * given_up_s
