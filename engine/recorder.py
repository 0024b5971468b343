"""Samples of one server and the GPUs, taken once a second and written to the store as they come."""

import asyncio
from collections import deque
from collections.abc import Callable

from engine.gpu import GpuReader
from engine.sampler import Sampler, to_record
from store.errors import StoreError
from store.records import SampleRecord

INTERVAL_S = 1.0
KEPT_UNWRITTEN = 3600  # an hour of samples waits in memory for a store that is full or locked


def gpu_used(gpu: GpuReader) -> Callable[[], float | None]:
    """What reads the GPU memory in use now, GiB over the visible GPUs; None without one."""
    return lambda: to_record(None, gpu.read(), None, None).gpu_mem_used_gib


class Recorder:
    """Takes a sample each second until cancelled. `run_id` is stamped on the samples taken while it is set."""

    def __init__(
        self,
        base_url: str,
        gpu: GpuReader,
        server_id: int,
        write: Callable[[list[SampleRecord]], None],
        api_key: str | None = None,
    ) -> None:
        self.run_id: int | None = None
        self._sampler = Sampler(base_url, gpu, api_key=api_key)
        self._server_id = server_id
        self._write = write
        self._unwritten: deque[SampleRecord] = deque(maxlen=KEPT_UNWRITTEN)
        self._of_run: list[SampleRecord] = []

    async def run(self) -> None:
        """Sample until cancelled; ticks that a slow answer overran are left out, not made up for."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self.take()
            due = max(due + INTERVAL_S, loop.time())
            await asyncio.sleep(due - loop.time())

    async def take(self) -> SampleRecord:
        """Take and write one sample now. A run's first and last are taken so, on its very edges."""
        server, gpu, _ = await self._sampler.once()
        record = to_record(server, gpu, self._server_id, self.run_id)
        self._unwritten.append(record)
        if self.run_id is not None:
            self._of_run.append(record)
        try:
            self._write(list(self._unwritten))
        except StoreError:
            return record  # kept, and written with the next one; the sweep itself says that the store is blocked
        self._unwritten.clear()
        return record

    def begin_run(self, run_id: int) -> None:
        self.run_id = run_id
        self._of_run = []

    def end_run(self) -> list[SampleRecord]:
        """The samples since `begin_run`, oldest first."""
        self.run_id = None
        return self._of_run

    async def close(self) -> None:
        await self._sampler.close()
