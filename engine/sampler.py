"""One look at a server and the GPUs: /metrics over HTTP and NVML beside it, on one clock."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

import httpx

from engine.gpu import GpuReader
from engine.metrics import parse_metrics
from engine.records import EngineError, GpuReading, GpuSample, ServerSample
from engine.text import clean, redact
from store.clock import utc_now
from store.records import SampleRecord

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


def to_record(
    server: ServerSample | None,
    gpu: GpuReading,
    server_id: int | None = None,
    run_id: int | None = None,
    indices: Collection[int] | None = None,
) -> SampleRecord:
    """One row for the database. `indices` are the physical GPUs that the server uses (None: all).

    A figure of several GPUs is None as soon as one of them cannot be read: a sum over some of them would be wrong.
    """
    gpus = [sample for sample in gpu.gpus if indices is None or sample.index in indices]
    utilization = _sum(sample.util_perc for sample in gpus)
    return SampleRecord(
        at=server.at if server else gpu.at,
        server_id=server_id,
        run_id=run_id,
        running=server.running if server else None,
        waiting=server.waiting if server else None,
        kv_perc=server.kv_perc if server else None,
        preemptions=server.preemptions if server else None,
        prompt_tokens=server.prompt_tokens if server else None,
        generation_tokens=server.generation_tokens if server else None,
        prefix_queries=server.prefix_queries if server else None,
        prefix_hits=server.prefix_hits if server else None,
        gpu_mem_used_gib=_sum(sample.mem_used_gib for sample in gpus),
        gpu_util_perc=None if utilization is None else utilization / len(gpus),
        gpu_power_w=_sum(sample.power_w for sample in gpus),
        gpu_energy_j=_sum(sample.energy_j for sample in gpus),
        raw=_raw(server, gpus),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    total, found = 0.0, False
    for value in values:
        if value is None:
            return None
        total, found = total + value, True
    return total if found else None


def _raw(server: ServerSample | None, gpus: Iterable[GpuSample]) -> dict[str, Any]:
    raw: dict[str, Any] = {}
    if server:
        raw["requests_finished"] = dict(server.requests_finished)
        raw["waiting_by_reason"] = dict(server.waiting_by_reason)
        raw["process_start"] = server.process_start
        raw["gpu_memory_utilization"] = server.gpu_memory_utilization
    if shown := [_gpu(sample) for sample in gpus]:
        raw["gpus"] = shown
    return raw


def _gpu(gpu: GpuSample) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": gpu.name,
        "mem_total_gib": gpu.mem_total_gib,
        "mem_used_gib": gpu.mem_used_gib,
        "util_perc": gpu.util_perc,
        "power_w": gpu.power_w,
        "power_limit_w": gpu.power_limit_w,
        "sm_clock_mhz": gpu.sm_clock_mhz,
        "temp_c": gpu.temp_c,
        "throttle_reasons": None if gpu.throttle_reasons is None else list(gpu.throttle_reasons),
        "pids": [process.pid for process in gpu.processes],
    }
