"""One look at a server and the GPUs: /metrics over HTTP and NVML beside it, on one clock."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Self

from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_look import GpuLook
from engine.records import EngineError, GpuReading, ServerSample
from engine.samples.rates import restarted
from engine.scrape.http_client import Answer, Getter, HttpClient, HttpError, Refused, TooLarge
from engine.scrape.metrics import parse_metrics
from engine.scrape.metrics_page import PageReader
from engine.text import clean, redact
from store.clock import utc_now

TIMEOUT_S = 2.0
VERSION_TIMEOUT_S = 0.5
LARGEST_PAGE = 16 * 2**20  # a page of vLLM has 50 kB an engine; more than this is no metrics page
_LONG_PAGE = 2**18  # parsed off the event loop: it may take longer than a key should wait
_LARGEST_VERSION = 2**12


class Sampler:
    """Samples one server. `once` may be called from several tasks: there is never more than one request under way.

    `base_url` is `http://host:port`; `api_key` goes along as a bearer token. `gpu` None reads no GPU: those of another
    machine are not to be had. A GpuLook may be given to several samplers. `client`, `clock` (monotonic seconds) and
    `now` (UTC ISO 8601) replace the network and the time. Proxy settings of the environment are not used.
    """

    def __init__(
        self,
        base_url: str,
        gpu: GpuReader | GpuLook | None,
        api_key: str | None = None,
        client: Getter | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._gpu = GpuLook(gpu, clock=clock, now=now) if isinstance(gpu, GpuReader) else gpu
        self._clock = clock
        self._now = now
        self._one_at_a_time = asyncio.Lock()
        headers = {"Authorization": f"Bearer {api_key.strip()}"} if api_key else None
        self._client = client or HttpClient(self.base_url, headers)
        self._page = PageReader()
        self._before: ServerSample | None = None  # of this very process of the server, None once it did not answer
        self._version: str | None = None

    async def once(self) -> tuple[ServerSample | None, GpuReading, str | None]:
        """The server's sample, the GPUs' reading, and one line that says why there is no server sample."""
        async with self._one_at_a_time:
            if self._gpu is None:
                sample, error = await self._server()
                return sample, GpuReading(self._now(), self._clock()), error
            reading = asyncio.ensure_future(self._gpu.read(TIMEOUT_S))
            try:
                sample, error = await self._server()
                return sample, await reading, error
            finally:
                reading.cancel()

    async def close(self) -> None:
        """Close the connection; the GPU reader is the caller's."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _server(self) -> tuple[ServerSample | None, str | None]:
        try:
            sample = await self._scrape()
        except EngineError as failure:
            self._before = None
            return None, str(failure)
        if self._before is None or restarted(self._before, sample):
            self._version = await self._ask_version()
        self._before = sample
        return replace(sample, version=self._version), None

    async def _scrape(self) -> ServerSample:
        shown = clean(redact(self.base_url), 80)
        try:
            async with asyncio.timeout(TIMEOUT_S):  # the whole answer
                answer = await self._client.get("/metrics", LARGEST_PAGE)
        except TimeoutError:
            raise EngineError(f"{shown} did not answer within {TIMEOUT_S:g} s.") from None
        except Refused:
            raise EngineError(f"Nothing answers at {shown}; is the server running?") from None
        except TooLarge:
            raise EngineError(
                f"{shown}/metrics answers with more than {LARGEST_PAGE >> 20} MiB; not a vLLM server."
            ) from None
        except HttpError as error:
            raise EngineError(f"{shown} cannot be asked: {clean(redact(str(error)), 120).rstrip('.')}.") from None
        if answer.status != 200:
            raise EngineError(_refused(f"{shown}/metrics", answer.status))
        at, clock = self._now(), self._clock()
        if len(answer.body) < _LONG_PAGE:
            return self._read(answer, at, clock)
        return await asyncio.to_thread(self._read, answer, at, clock)

    def _read(self, answer: Answer, at: str, clock: float) -> ServerSample:
        return parse_metrics(answer.body.decode("utf-8", "replace"), at, clock, self._page)

    async def _ask_version(self) -> str | None:
        """What GET /version says, None where that is not there (or slow: no figure waits for it)."""
        try:
            async with asyncio.timeout(VERSION_TIMEOUT_S):
                answer = await self._client.get("/version", _LARGEST_VERSION)
            said = json.loads(answer.body) if answer.status == 200 else None
        except (TimeoutError, HttpError, ValueError, RecursionError):
            return None
        version = said.get("version") if isinstance(said, dict) else None
        return clean(version, 40) or None if isinstance(version, str) else None


def _refused(url: str, status: int) -> str:
    if status in (401, 403):
        return f"{url} wants an API key (status {status})."
    if status == 404:
        return f"{url} is not there (status 404); is this the address of a vLLM server?"
    return f"{url} answered with status {status}."
