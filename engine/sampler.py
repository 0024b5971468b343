"""One look at a server and the GPUs: /metrics over HTTP and NVML beside it, on one clock."""

import asyncio
import time
from collections.abc import Callable
from typing import Self

import httpx

from engine.gpu import GpuReader
from engine.metrics import parse_metrics
from engine.records import EngineError, GpuReading, ServerSample
from engine.text import clean, redact
from store.clock import utc_now

TIMEOUT_S = 2.0
LARGEST_PAGE = 16 * 2**20  # a page of vLLM has 50 kB; more than this is no metrics page


class Sampler:
    """Samples one server. `once` may be called from several tasks: there is never more than one request under way.

    `base_url` is `http://host:port`; `api_key` goes along as a bearer token. `transport`, `clock` (monotonic seconds)
    and `now` (UTC ISO 8601) replace the network and the time. Proxy settings of the environment are not used.
    """

    def __init__(
        self,
        base_url: str,
        gpu: GpuReader,
        transport: httpx.AsyncBaseTransport | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = utc_now,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._gpu = gpu
        self._clock = clock
        self._now = now
        self._one_at_a_time = asyncio.Lock()
        self._client = httpx.AsyncClient(
            transport=transport,
            trust_env=False,
            timeout=TIMEOUT_S,
            headers={b"Authorization": f"Bearer {api_key.strip()}".encode()} if api_key else None,
        )

    async def once(self) -> tuple[ServerSample | None, GpuReading, str | None]:
        """The server's sample, the GPUs' reading, and one line that says why there is no server sample."""
        async with self._one_at_a_time:
            reading = asyncio.create_task(asyncio.to_thread(self._gpu.read))
            try:
                sample, error = await self._scrape(), None
            except EngineError as failure:
                sample, error = None, str(failure)
            return sample, await reading, error

    async def close(self) -> None:
        """Close the connection; the GPU reader is the caller's."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _scrape(self) -> ServerSample:
        shown = clean(redact(self.base_url), 80)
        try:
            async with asyncio.timeout(TIMEOUT_S):  # the whole answer; httpx counts each read anew
                text = await self._get(f"{self.base_url}/metrics")
        except (TimeoutError, httpx.TimeoutException):
            raise EngineError(f"{shown} did not answer within {TIMEOUT_S:g} s.") from None
        except httpx.ConnectError:
            raise EngineError(f"Nothing answers at {shown}; is the server running?") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = clean(redact(str(error)), 120).rstrip(".") or type(error).__name__
            raise EngineError(f"{shown} cannot be asked: {said}.") from None
        return parse_metrics(text, self._now(), self._clock())

    async def _get(self, url: str) -> str:
        if not 0 <= (httpx.URL(url).port or 0) < 65536:
            raise httpx.InvalidURL("port out of range")
        async with self._client.stream("GET", url) as response:
            if response.status_code != 200:
                raise EngineError(_refused(clean(redact(url), 90), response.status_code))
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > LARGEST_PAGE:
                    raise EngineError(
                        f"{clean(redact(url), 90)} answers with more than {LARGEST_PAGE >> 20} MiB; not a vLLM server."
                    )
        return body.decode("utf-8", "replace")


def _refused(url: str, status: int) -> str:
    if status in (401, 403):
        return f"{url} wants an API key (status {status})."
    if status == 404:
        return f"{url} is not there (status 404); is this the address of a vLLM server?"
    return f"{url} answered with status {status}."
