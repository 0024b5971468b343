"""A server that is not ours, sampled by the screen while it is looked at, in memory only."""

import asyncio
import importlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.text import redact
from store.records import SampleRecord

if TYPE_CHECKING:
    from engine.records import ServerSample

INTERVALS_S = (0.5, 1.0, 2.0, 5.0, 10.0)
KEPT = 1800
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class ForeignServer:
    """The samples of one URL. GPUs are read only where the server is on this machine: others' are not its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown = redact(url)
        self.interval_s = 1.0
        self.error: str | None = None
        self.newest: ServerSample | None = None
        self.samples: deque[SampleRecord] = deque(maxlen=KEPT)
        self.local = urlsplit(url if "//" in url else f"//{url}").hostname in LOOPBACK
        self.gpu_note: str | None = None if self.local else "GPUs are those of the server's own machine: not read here"

    def change_interval(self, step: int) -> None:
        """Sample slower (+1) or faster (−1)."""
        at = INTERVALS_S.index(self.interval_s)
        self.interval_s = INTERVALS_S[min(len(INTERVALS_S) - 1, max(0, at + step))]

    async def run(self, sampled: Callable[[], object]) -> None:
        """Sample until cancelled, calling `sampled` after each. A server that does not answer is asked again."""
        await asyncio.to_thread(importlib.import_module, "engine.sampler")  # httpx takes 0.16 s to load
        from engine.gpu import GpuReader
        from engine.sample_record import to_record
        from engine.sampler import Sampler

        gpu = GpuReader()
        sampler = Sampler(self.url, gpu)
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                server, reading, self.error = await sampler.once()
                if server is not None:
                    self.newest = server
                if self.local:
                    self.gpu_note = reading.note
                record = to_record(server, reading, error=self.error)
                self.samples.append(record)
                sampled()
                await asyncio.sleep(max(0.05, began + self.interval_s - loop.time()))
        finally:
            await sampler.close()
            gpu.close()
