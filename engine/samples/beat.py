"""Looks on a steady beat: one an interval, whether the server answers in time or not."""

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

from engine.gpus.gpu_look import GpuLook
from engine.records import GpuReading, ServerSample
from engine.samples.rates import restarted
from engine.samples.sampler import TIMEOUT_S, Sampler
from engine.text import clean, redact

PATIENCE = 0.9  # of an interval, for an answer to be that interval's
GRAINS = 60  # so many samples of a window are kept at most


class Look(NamedTuple):
    server: ServerSample | None
    gpu: GpuReading
    error: str | None  # why there is no server


async def looks(sampler: Sampler, gpu: GpuLook, every_s: float) -> AsyncGenerator[Look, None]:
    """A Look in each interval for ever. The beat does not drift; intervals that whoever takes them overran are left
    out. While an answer is awaited the server is not asked again, and each interval says so and for how long, over all
    requests that it let wait until they were given up; an answer counts when it comes. `at` never goes back.
    Several servers are each given a task of their own, so that none waits for another.
    """
    loop = asyncio.get_running_loop()
    due = asked = silent_from = loop.time()
    silent = late = False
    pending: asyncio.Task[tuple[ServerSample | None, GpuReading, str | None]] | None = None
    try:
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            if pending is None:
                pending, asked, late = asyncio.create_task(sampler.once()), loop.time(), False
                silent_from = silent_from if silent else asked
            await asyncio.wait({pending}, timeout=max(0.0, due + PATIENCE * every_s - loop.time()))
            if pending.done():
                look = Look(*pending.result())
                pending = None
                if late:  # the GPUs were read when it was asked, before looks that were given meanwhile
                    look = look._replace(gpu=await gpu.read(min(TIMEOUT_S, every_s)))
                silent = look.server is None and loop.time() - asked >= TIMEOUT_S  # a refusal is an answer too
            else:
                late = True
                shown = clean(redact(sampler.base_url), 80)
                waited = f"{shown} has not answered for {loop.time() - silent_from:.1f} s."
                look = Look(None, await gpu.read(min(TIMEOUT_S, every_s)), waited)
            yield look
            due += every_s * max(1, int((loop.time() - due) // every_s))
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)


class Past:
    """The samples of one server from which rates and latencies are counted: those of the last `window_s` seconds, or
    without a window the last one that it gave."""

    def __init__(self, window_s: float | None = None) -> None:
        self._window_s = window_s or 0.0
        self._kept: list[ServerSample] = []

    def take(self, sample: ServerSample) -> ServerSample | None:
        """The sample to count from, None without one; `sample` is the next ones'. After a restart it is the last of
        the server's earlier life, and then the first of the new one."""
        kept = self._kept
        if kept and restarted(kept[-1], sample):
            self._kept = [sample]
            return kept[-1]
        while len(kept) > 1 and kept[1].clock <= sample.clock - self._window_s:
            kept.pop(0)
        before = kept[0] if kept else None
        # A restart is told from the newest one, so that stands in for those that a long window needs not keep.
        if len(kept) > 1 and kept[-1].clock - kept[-2].clock < self._window_s / GRAINS:
            kept.pop()
        kept.append(sample)
        return before
