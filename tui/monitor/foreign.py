"""Servers that are not ours: each is sampled by a task of its own, in memory only, so that one that hangs delays
nobody."""

import asyncio
import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.discovery import ELSEWHERE, on_this_machine
from engine.limiting.knobs import Knobs, knobs_of_flags
from engine.samples.sample_record import kept_gpus, to_record
from engine.text import redact
from tui.monitor.watched import Watched

if TYPE_CHECKING:
    from engine.gpus.gpu_look import GpuLook
    from engine.records import GpuReading, ServerSample
    from engine.samples.foreign_record import ForeignRecords

PATIENCE = 0.9  # of an interval, for an answer to be that interval's
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::")


class ForeignServer(Watched):
    """The samples of one URL. GPUs are read only where the server is on this machine: others' are not its own.

    `flags` are those of its command line where it was found on this machine. Only an address that the person gave
    (`api_key`) is told a key.
    """

    def __init__(self, url: str, began: float, *, pid: int | None = None, api_key: str | None = None) -> None:
        super().__init__(began)
        self.url = url
        self.shown = redact(url)
        self.flags: Mapping[str, Any] | None = None  # not known, which is not the same as none given
        self.pid = pid
        self.name: str | None = None  # by its command line, until it says one itself
        self.found_at: float | None = None  # when it was last seen among this machine's servers, monotonic seconds
        self.local = on_this_machine(url)
        self.gpu_note: str | None = None if self.local else ELSEWHERE
        self._api_key = api_key
        self._wake = asyncio.Event()
        self._environ: tuple[int | None, Mapping[str, str]] = None, {}
        self._knobs: tuple[object, Knobs] | None = None

    @property
    def knobs(self) -> Knobs:
        """Its settings, looked up anew when a sample tells more of the machine or the version than before."""
        told = self.answered.raw if self.answered is not None else {}
        by = (
            self.flags is not None and len(self.flags),
            told.get("version"),
            told.get("gpu_memory_utilization"),
            len(kept_gpus(self.answered)),
        )
        if self._knobs is None or self._knobs[0] != by:
            self._knobs = by, knobs_of_flags(self.flags, self.answered)
        return self._knobs[1]

    def set_interval(self, seconds: float) -> None:
        """Sample every so many seconds, from now on."""
        if seconds != self.interval_s:
            self.interval_s = seconds
            self._wake.set()

    async def run(
        self, gpu: "GpuLook", sampled: Callable[["ForeignServer"], object], records: "ForeignRecords | None" = None
    ) -> None:
        """Sample until cancelled, calling `sampled` after each. While an answer is awaited, each interval says so, and
        the server is not asked again. `records` keeps each sample."""
        await asyncio.to_thread(importlib.import_module, "engine.samples.sampler")
        from engine.samples.sampler import TIMEOUT_S, Sampler

        sampler = Sampler(self.url, gpu if self.local else None, api_key=self._api_key)
        pending: asyncio.Task[tuple[ServerSample | None, GpuReading, str | None]] | None = None
        try:
            while True:
                began = time.monotonic()
                if pending is None:
                    pending = asyncio.create_task(sampler.once())
                await asyncio.wait({pending}, timeout=PATIENCE * self.interval_s)
                if pending.done():
                    self._take(*pending.result())
                    pending = None
                else:
                    reading = await gpu.read(min(TIMEOUT_S, self.interval_s))
                    self._take(None, reading, f"{self.shown} does not answer.")
                if records is not None and self.newest is not None:
                    await asyncio.to_thread(records.keep, self.url, self.newest)
                sampled(self)
                await self._pause(began)
        finally:
            if pending is not None:
                pending.cancel()
                await asyncio.gather(pending, return_exceptions=True)
            await sampler.close()

    def _take(self, server: "ServerSample | None", reading: "GpuReading", error: str | None) -> None:
        from engine.gpus.visible_gpus import as_server_sees, gpus_used

        used = gpus_used(self.flags) if self.flags else None
        # The GPUs that were read while a server of another machine hung are not its own.
        seen = (
            as_server_sees(reading, self._cuda_environ(), used) if self.local else replace(reading, gpus=(), note=None)
        )
        self.add(to_record(server, seen, error=error))

    def _cuda_environ(self) -> Mapping[str, str]:
        """Which GPUs it was started with, where its process was found."""
        from engine.gpus.visible_gpus import cuda_environ

        if self.pid is not None and self._environ[0] != self.pid:
            self._environ = self.pid, cuda_environ(self.pid)
        return self._environ[1]

    async def _pause(self, began: float) -> None:
        """Until the next look is due; it comes sooner where the interval was made shorter meanwhile."""
        while (left := max(0.02, began + self.interval_s - time.monotonic())) > 0:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), left)
            except TimeoutError:
                return


def place(url: str) -> tuple[str, int | None]:
    """Host and port, the names of this machine all as one: two spellings of one server are equal."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    host = parts.hostname or ""
    return LOOPBACK[0] if host in LOOPBACK else host, parts.port
