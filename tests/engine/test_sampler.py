import asyncio
import dataclasses
import json
import math

import httpx
import pytest

from engine.gpu import GpuReader
from engine.records import GpuReading, GpuSample, ServerSample
from engine.sample_record import to_record
from engine.sampler import LARGEST_PAGE, Sampler
from store.records import SampleRecord
from tests.engine.fake_nvml import FakeNvml, NVMLError_LibraryNotFound
from tests.engine.observed import H200

PAGE = (H200 / "metrics/kv-starved-load-03.txt").read_text()
AT = "2026-11-30T10:00:00.000Z"


def sampler(handler: object, gpu: GpuReader | None = None, api_key: str | None = None) -> Sampler:
    return Sampler(
        "http://127.0.0.1:8000/",
        gpu or GpuReader(FakeNvml(), lambda: 1.0, lambda: AT),
        transport=httpx.MockTransport(handler),  # type: ignore[arg-type]
        api_key=api_key,
        clock=lambda: 42.0,
        now=lambda: AT,
    )


async def test_server_and_gpus_at_one_moment() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, text=PAGE)

    async with sampler(answer, api_key="secret") as looking:
        server, gpu, error = await looking.once()
    assert error is None
    assert server is not None
    assert (server.at, server.clock, server.running, server.waiting) == (AT, 42.0, 31.0, 169.0)
    assert gpu.gpus[0].name == "NVIDIA H200"
    assert str(asked[0].url) == "http://127.0.0.1:8000/metrics"
    assert asked[0].headers["Authorization"] == "Bearer secret"


async def test_without_a_key_none_is_sent() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert "Authorization" not in request.headers
        return httpx.Response(200, text=PAGE)

    async with sampler(answer) as looking:
        assert (await looking.once())[2] is None


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def time_out(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("late", request=request)


def break_off(request: httpx.Request) -> httpx.Response:
    raise httpx.RemoteProtocolError("odd \x1b[31m[/x]\nanswer", request=request)


def say(status: int, text: str = "") -> object:
    return lambda request: httpx.Response(status, text=text)


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (refuse, "Nothing answers at http://127.0.0.1:8000; is the server running?"),
        (time_out, "http://127.0.0.1:8000 did not answer within 2 s."),
        (break_off, "http://127.0.0.1:8000 cannot be asked: odd [/x] answer."),
        (say(401), "http://127.0.0.1:8000/metrics wants an API key (status 401)."),
        (say(404), "http://127.0.0.1:8000/metrics is not there (status 404); is this the address of a vLLM server?"),
        (say(503), "http://127.0.0.1:8000/metrics answered with status 503."),
        (
            say(200, "<html></html>"),
            "The answer of /metrics holds no metrics; is this the address of a vLLM server?",
        ),
        (
            say(200, "x" * (LARGEST_PAGE + 1)),
            "http://127.0.0.1:8000/metrics answers with more than 16 MiB; not a vLLM server.",
        ),
    ],
)
async def test_what_goes_wrong_is_one_line_and_the_gpus_are_read_all_the_same(handler: object, said: str) -> None:
    async with sampler(handler) as looking:
        server, gpu, error = await looking.once()
    assert (server, error) == (None, said)
    assert len(gpu.gpus) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h:port", "http://h:port cannot be asked: Invalid port: 'port'."),
        ("http://127.0.0.1:99999", "http://127.0.0.1:99999 cannot be asked: port out of range."),
        ("ftp://h", "ftp://h cannot be asked: Request URL has an unsupported protocol 'ftp://'."),
        ("h", "h cannot be asked: Request URL is missing an 'http://' or 'https://' protocol."),
    ],
)
async def test_a_url_that_is_none_is_one_line(url: str, said: str) -> None:
    async with Sampler(url, GpuReader(FakeNvml())) as looking:
        server, _, error = await looking.once()
    assert (server, error) == (None, said)


async def test_a_key_of_any_kind_is_sent_and_never_said() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers.raw[-1] == (b"Authorization", "Bearer grüße".encode())
        raise httpx.LocalProtocolError(f"Illegal header value {request.headers['Authorization']}", request=request)

    async with sampler(answer, api_key="grüße\n") as looking:
        error = (await looking.once())[2]
    assert error == "http://127.0.0.1:8000 cannot be asked: Illegal header value Bearer ***."


async def test_an_answer_that_drips_ends_at_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sampler.TIMEOUT_S", 0.05)

    class Drip(httpx.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            while True:
                yield b"#\n"
                await asyncio.sleep(0.01)

    async with sampler(lambda request: httpx.Response(200, stream=Drip())) as looking:
        _, _, error = await asyncio.wait_for(looking.once(), 2)
    assert error == "http://127.0.0.1:8000 did not answer within 0.05 s."


async def test_there_is_never_more_than_one_request_under_way() -> None:
    now = most = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return httpx.Response(200, text=PAGE)

    async with sampler(answer) as looking:
        await asyncio.gather(*(looking.once() for _ in range(5)))
    assert most == 1


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = PAGE.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as served:
        port = served.sockets[0].getsockname()[1]
        async with Sampler(f"http://127.0.0.1:{port}", GpuReader(FakeNvml())) as looking:
            server, _, error = await looking.once()
    assert error is None
    assert server is not None
    assert server.preemptions == 3.0


SERVER = ServerSample(
    at=AT,
    clock=1.0,
    running=31.0,
    waiting=169.0,
    waiting_by_reason={"capacity": 169.0},
    kv_perc=99.0,
    preemptions=3.0,
    prompt_tokens=10.0,
    generation_tokens=20.0,
    prefix_queries=30.0,
    prefix_hits=4.0,
    requests_finished={"length": 5.0},
    process_start=1.79e9,
    gpu_memory_utilization=0.92,
)
GPUS = GpuReading(
    at="2026-11-30T09:59:59.000Z",
    clock=1.0,
    gpus=(
        GpuSample(
            0, mem_used_gib=10.0, util_perc=50.0, power_w=100.0, energy_j=1000.0, throttle_reasons=("power cap",)
        ),
        GpuSample(1, mem_used_gib=20.0, util_perc=100.0, power_w=300.0),
    ),
)


def test_a_record_has_sums_means_and_absences() -> None:
    record = to_record(SERVER, GPUS, 3, 7)
    assert dataclasses.replace(record, raw={}) == SampleRecord(
        at=AT,
        server_id=3,
        run_id=7,
        running=31.0,
        waiting=169.0,
        kv_perc=99.0,
        preemptions=3.0,
        prompt_tokens=10.0,
        generation_tokens=20.0,
        prefix_queries=30.0,
        prefix_hits=4.0,
        gpu_mem_used_gib=30.0,
        gpu_util_perc=75.0,
        gpu_power_w=400.0,
        gpu_energy_j=None,  # one of the two cannot be read
    )
    assert record.raw["waiting_by_reason"] == {"capacity": 169.0}
    assert record.raw["requests_finished"] == {"length": 5.0}
    assert record.raw["process_start"] == 1.79e9
    assert record.raw["gpu_memory_utilization"] == 0.92
    assert [gpu["throttle_reasons"] for gpu in record.raw["gpus"]] == [["power cap"], None]
    json.dumps(record.raw, allow_nan=False)


def test_only_the_gpus_of_the_server_are_counted() -> None:
    record = to_record(SERVER, GPUS, indices=(0,))
    assert (record.gpu_mem_used_gib, record.gpu_util_perc, record.gpu_power_w, record.gpu_energy_j) == (
        10,
        50,
        100,
        1000,
    )
    assert [gpu["index"] for gpu in record.raw["gpus"]] == [0]
    assert to_record(SERVER, GPUS, indices=()).gpu_mem_used_gib is None


def test_a_record_without_a_server_or_without_gpus() -> None:
    alone = to_record(None, GPUS)
    assert (alone.at, alone.running, alone.gpu_mem_used_gib) == (GPUS.at, None, 30.0)
    nothing = GpuReader(FakeNvml(init_error=NVMLError_LibraryNotFound()), lambda: 1.0, lambda: AT).read()
    record = to_record(SERVER, nothing)
    assert (record.gpu_mem_used_gib, record.gpu_util_perc, record.gpu_power_w) == (None, None, None)
    assert "gpus" not in record.raw


def test_only_finite_numbers_are_recorded() -> None:
    for value in dataclasses.asdict(to_record(SERVER, GPUS)).values():
        assert not isinstance(value, float) or math.isfinite(value)
