"""Samples of one server and the GPUs, taken once a second and written to the store as they come."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Self

from engine.gpus.gpu import GpuReader
from engine.gpus.visible_gpus import as_server_sees
from engine.keeper.journal import PASSING, TRY_AGAIN_S, Journal
from engine.samples.sample_record import to_record
from engine.samples.sampler import Sampler
from engine.samples.thinner import Thinner, not_any_more
from engine.scrape.http_client import Getter
from store.errors import StoreError
from store.records import SampleRecord

INTERVAL_S = 1.0
KEPT_UNWRITTEN = 3600  # an hour of samples waits in memory for a store that is full or locked


def gpu_used(gpu: GpuReader, environ: Mapping[str, str]) -> Callable[[], float | None]:
    """What reads the memory in use now, GiB over the GPUs that `environ` lets a server see; None without one."""

    def used() -> float | None:
        return to_record(None, as_server_sees(gpu.read(), environ)).gpu_mem_used_gib

    return used


class Recorder:
    """A context manager that takes a sample each second. `run_id` is stamped on the samples taken while it is set;
    while none is, old samples of all servers are thinned (store.thinning), some each second until there are no more.

    `environ` is the server's: of the GPUs only those are kept that its CUDA_VISIBLE_DEVICES names, and of them the
    first `uses` summed (None: all). Sampling that ends by
    an error of its own costs samples, never a result: the error becomes an event.
    """

    def __init__(
        self,
        journal: Journal,
        server_id: int,
        base_url: str,
        gpu: GpuReader,
        environ: Mapping[str, str],
        api_key: str | None = None,
        client: Getter | None = None,
        uses: int | None = None,
    ) -> None:
        self.run_id: int | None = None
        self._journal = journal
        self._server_id = server_id
        self._environ = environ
        self._uses = uses
        self._sampler = Sampler(base_url, gpu, api_key, client)
        self._unwritten: deque[SampleRecord] = deque(maxlen=KEPT_UNWRITTEN)
        self._of_run: list[SampleRecord] = []
        self._thinner = Thinner(journal.writer)
        self._sampling: asyncio.Task[None] | None = None
        self.progress: Hashable = None
        """Changes while the server computes tokens or has nothing to do; stays while it has requests and gets nowhere,
        and while it does not answer."""

    async def __aenter__(self) -> Self:
        self._sampling = asyncio.create_task(self._sample())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._sampling is not None
        self._sampling.cancel()
        (ending,) = await asyncio.gather(self._sampling, return_exceptions=True)
        await self._sampler.close()
        self._write()
        if isinstance(ending, Exception):
            await self._journal.event(f"sampling ended early: {type(ending).__name__}: {ending}", "error")

    async def take(self) -> None:
        """Take one sample now. A run's first and last are taken so, on its very edges."""
        server, gpu, error = await self._sampler.once()
        seen = as_server_sees(gpu, self._environ, self._uses)
        record = to_record(server, seen, self._server_id, self.run_id, error=error)
        self._unwritten.append(record)
        if server is not None:
            busy = bool(server.running or server.waiting)
            self.progress = (server.prompt_tokens, server.generation_tokens) if busy else server.at
        if self.run_id is not None:
            self._of_run.append(record)

    def begin_run(self, run_id: int) -> None:
        self.run_id = run_id
        self._of_run = []

    def end_run(self) -> list[SampleRecord]:
        """The samples since `begin_run`, oldest first."""
        self.run_id = None
        return self._of_run

    async def _sample(self) -> None:
        """Sample until cancelled; ticks that a slow answer overran are left out, not made up for."""
        loop = asyncio.get_running_loop()
        due = write_at = loop.time()
        while True:
            await self.take()
            if loop.time() >= write_at and not self._write():
                write_at = loop.time() + TRY_AGAIN_S
            if not self._unwritten and self.run_id is None:
                await self._thin()
            due = max(due + INTERVAL_S, loop.time())
            await asyncio.sleep(due - loop.time())

    def _write(self) -> bool:
        """False where the store takes nothing now: the sweep itself says so, and the samples wait."""
        try:
            self._journal.writer.insert_samples(list(self._unwritten))
        except PASSING:
            return False
        self._unwritten.clear()
        return True

    async def _thin(self) -> None:
        """Thin some old samples; what is wrong with them must not cost the new ones."""
        try:
            self._thinner.some()
        except StoreError as error:
            await self._journal.event(not_any_more(error), "warning")
