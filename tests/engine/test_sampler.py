"""Looks at servers that lie, hang, die and return; each is one line or a sample, and none takes longer than it may."""

import asyncio
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from engine.gpus.gpu import GpuReader
from engine.records import GpuReading, ServerSample
from engine.samples.sampler import Sampler
from engine.scrape.http_client import Answer, HttpError, Refused, TooLarge
from engine.scrape.metrics import parse_metrics
from tests.engine.fake_nvml import FakeNvml
from tests.engine.observed import H200
from tests.lying_exporter import LyingExporter
from tests.served_pages import ABSURD, HOSTILE_NAMES, Served

PAGE = (H200 / "metrics/kv-starved-load-03.txt").read_text()
AT = "2026-11-30T10:00:00.000Z"
Look = tuple[ServerSample | None, GpuReading, str | None]


class Fake:
    """Answers that no network carries: a page or a version by path, or what is to be raised."""

    def __init__(self, page: Answer | Exception, version: Answer | Exception | None = None) -> None:
        self.said = {"/metrics": page, "/version": version or Answer(404, b"")}
        self.asked: list[str] = []
        self.under_way = self.most = 0

    async def get(self, path: str, most: int) -> Answer:
        self.asked.append(path)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.001)
        self.under_way -= 1
        said = self.said[path]
        if isinstance(said, Exception):
            raise said
        return said

    async def close(self) -> None:
        pass


def sampler(client: Fake, gpu: GpuReader | None = None) -> Sampler:
    gpu = gpu or GpuReader(FakeNvml(), lambda: 1.0, lambda: AT)
    return Sampler("http://127.0.0.1:8000/", gpu, client=client, clock=lambda: 42.0, now=lambda: AT)


async def look(url: str) -> Look:
    async with Sampler(url, None) as looking:
        return await looking.once()


async def test_server_and_gpus_at_one_moment() -> None:
    client = Fake(Answer(200, PAGE.encode()), Answer(200, b'{"version":"0.25.1"}'))
    async with sampler(client) as looking:
        server, gpu, error = await looking.once()
    assert error is None
    assert server is not None
    assert (server.at, server.clock, server.running, server.waiting) == (AT, 42.0, 31.0, 169.0)
    assert server.version == "0.25.1"
    assert gpu.gpus[0].name == "NVIDIA H200"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (Refused("x"), "Nothing answers at http://127.0.0.1:8000; is the server running?"),
        (TimeoutError(), "http://127.0.0.1:8000 did not answer within 2 s."),
        (HttpError("odd \x1b[31m[/x]\nanswer."), "http://127.0.0.1:8000 cannot be asked: odd [/x] answer."),
        (Answer(401, b""), "http://127.0.0.1:8000/metrics wants an API key (status 401)."),
        (
            Answer(404, b""),
            "http://127.0.0.1:8000/metrics is not there (status 404); is this the address of a vLLM server?",
        ),
        (Answer(503, b""), "http://127.0.0.1:8000/metrics answered with status 503."),
        (
            Answer(200, b"<html></html>\n"),
            "The answer of /metrics holds no metrics; is this the address of a vLLM server?",
        ),
        (TooLarge("x"), "http://127.0.0.1:8000/metrics answers with more than 16 MiB; not a vLLM server."),
    ],
)
async def test_what_goes_wrong_is_one_line_and_the_gpus_are_read_all_the_same(
    page: Answer | Exception, said: str
) -> None:
    async with sampler(Fake(page)) as looking:
        server, gpu, error = await looking.once()
    assert (server, error) == (None, said)
    assert len(gpu.gpus) == 1


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ("hang", "did not answer within 0.2 s."),
        ("stop", "did not answer within 0.2 s."),
        ("trickle", "did not answer within 0.2 s."),
        ("slow", "did not answer within 0.2 s."),
        ("die", "breaks off"),
        ("cut", "breaks off"),
        ("drop", "breaks off"),
        ("refuse", "Nothing answers at"),
        ("garbage", "holds no metrics"),
        ("html", "holds no metrics"),
        ("json", "holds no metrics"),
        ("empty", "holds no metrics"),
        ("500", "status 500"),
        ("503", "status 503"),
        ("401", "wants an API key"),
        ("404", "is not there"),
        ("redirect", "status 307"),
        ("bad-gzip", "says that it is compressed, and is not"),
        ("huge", "more than 16 MiB"),
        ("bomb", "more than 16 MiB"),
        ("not-http", "no HTTP"),
    ],
)
async def test_a_server_that_lies_and_comes_to_its_senses(
    behaviour: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LyingExporter() as exporter, Sampler(exporter.url, None) as looking:
        assert (await looking.once())[2] is None
        exporter.behave(behaviour)
        with monkeypatch.context() as patched:
            patched.setattr("engine.samples.sampler.TIMEOUT_S", 0.2 if "0.2 s" in says else 20.0)
            server, _, error = await looking.once()
        assert server is None
        assert error is not None
        assert says in error
        assert "\n" not in error
        exporter.behave("answer")
        server, _, error = await looking.once()
        assert error is None
        assert server is not None
        assert server.version == "0.32.0"


@pytest.mark.parametrize("names", ["new", "old", "v0", "rust"])
async def test_old_and_new_servers(names: str) -> None:
    async with LyingExporter(Served(names=names, running=7)) as exporter:  # type: ignore[arg-type]
        server, _, error = await look(exporter.url)
    assert error is None
    assert server is not None
    assert (server.running, server.kv_perc) == (7.0, 40.0)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
async def test_names_of_any_kind(name: str) -> None:
    async with LyingExporter(Served(model=name, adapters=(name,))) as exporter:
        server, _, error = await look(exporter.url)
    assert error is None
    assert server is not None
    assert server.model_name is not None
    assert server.model_name.isprintable()


@pytest.mark.parametrize("absurd", ABSURD)
async def test_absurd_numbers(absurd: str) -> None:
    async with LyingExporter(Served(absurd=absurd)) as exporter:
        server, _, error = await look(exporter.url)
    assert error is None
    assert server is not None


async def test_a_server_is_asked_for_its_version_once_in_its_life() -> None:
    now = [0.0]
    served = Served(clock=lambda: now[0])
    async with LyingExporter(served) as exporter, Sampler(exporter.url, None) as looking:

        async def version() -> str | None:
            now[0] += 1.0
            server = (await looking.once())[0]
            assert server is not None
            return server.version

        assert [await version() for _ in range(3)] == ["0.32.0"] * 3
        assert exporter.asked.count("/version") == 1
        served.version = "0.33.0"
        served.restart()
        assert [await version(), await version()] == ["0.33.0"] * 2
        exporter.behave("refuse")
        assert (await looking.once())[0] is None
        exporter.behave("answer")
        await version()
        assert exporter.asked.count("/version") == 3


async def test_a_new_life_is_noticed_where_the_server_does_not_say_when_it_began() -> None:
    now = [0.0]
    served = Served(names="rust", clock=lambda: now[0])
    async with LyingExporter(served) as exporter, Sampler(exporter.url, None) as looking:
        now[0] = 10.0
        await looking.once()
        served.version = "0.33.0"
        served.restart()
        now[0] = 11.0
        server = (await looking.once())[0]
    assert server is not None
    assert (server.process_start, server.version) == (None, "0.33.0")


@pytest.mark.parametrize(
    "version",
    [
        Answer(404, b""),
        Answer(200, b"not JSON"),
        Answer(200, b"[" * 4000),
        Answer(200, b'["0.25"]'),
        Answer(200, b'{"version": 3}'),
        Answer(200, b"\xff\xfe"),
        HttpError("x"),
        TooLarge("x"),
        TimeoutError(),
    ],
)
async def test_a_version_that_is_not_there_costs_no_look(version: Answer | Exception) -> None:
    async with sampler(Fake(Answer(200, PAGE.encode()), version)) as looking:
        server, _, error = await looking.once()
    assert error is None
    assert server is not None
    assert (server.version, server.running) == (None, 31.0)


async def test_a_version_is_shown_as_clean_as_any_text() -> None:
    said = Answer(200, b'{"version": "0.\\u001b[31m25 [/x]' + b"9" * 100 + b'"}')
    async with sampler(Fake(Answer(200, PAGE.encode()), said)) as looking:
        server = (await looking.once())[0]
    assert server is not None
    assert server.version is not None
    assert server.version.startswith("0.25 [/x]9")
    assert len(server.version) == 40


async def test_there_is_never_more_than_one_request_under_way() -> None:
    client = Fake(Answer(200, PAGE.encode()))
    async with sampler(client) as looking:
        await asyncio.gather(*(looking.once() for _ in range(5)))
    assert client.most == 1


async def test_servers_that_hang_delay_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.samples.sampler.TIMEOUT_S", 1.0)
    async with LyingExporter(behaviour="hang") as hanging, LyingExporter() as healthy:
        stuck = [Sampler(hanging.url, None) for _ in range(20)]
        looks = [asyncio.create_task(one.once()) for one in stuck]
        async with Sampler(healthy.url, None) as looking:
            took = []
            for _ in range(5):
                began = time.monotonic()
                assert (await looking.once())[2] is None
                took.append(time.monotonic() - began)
                await asyncio.sleep(0.05)
        assert not any(task.done() for task in looks)
        assert sorted(took)[2] < 0.4
        await asyncio.gather(*looks)
        for one in stuck:
            await one.close()


async def test_a_look_that_is_given_up_leaves_nothing_behind() -> None:
    async with LyingExporter(behaviour="hang") as exporter, Sampler(exporter.url, None) as looking:
        task = asyncio.create_task(looking.once())
        async with asyncio.timeout(1.0):
            while exporter.open != 1:  # noqa: ASYNC110 - a count of connections has no event to wait for
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        exporter.behave("answer")
        assert (await looking.once())[2] is None
        assert exporter.open == 1


async def test_a_page_too_long_to_be_read_between_two_keys_is_read_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []

    def reading(*args: Any) -> ServerSample:
        threads.append(threading.get_ident())
        return parse_metrics(*args)

    monkeypatch.setattr("engine.samples.sampler.parse_metrics", reading)
    for engines in (1, 8000):
        lines = "".join(f'vllm:num_requests_running{{engine="{engine}"}} 1.0\n' for engine in range(engines))
        async with sampler(Fake(Answer(200, lines.encode()))) as looking:
            server = (await looking.once())[0]
        assert server is not None
        assert server.running == engines
    assert threads[0] == threading.get_ident() != threads[1]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with LyingExporter() as exporter:
        assert (await look(exporter.url))[2] is None


async def test_the_key_goes_along_and_never_into_an_error() -> None:
    async with LyingExporter() as exporter:
        async with Sampler(exporter.url, None, api_key=" secret\n") as looking:
            await looking.once()
        assert exporter.headers[0]["authorization"] == "Bearer secret"
        async with Sampler(exporter.url, None, api_key="sec\nret") as looking:
            error = (await looking.once())[2]
        assert error is not None
        assert "line breaks in the API key" in error
        assert "ret" not in error.replace("are", "")
        async with Sampler(exporter.url, None) as looking:
            await looking.once()
        assert "authorization" not in exporter.headers[-1]


def test_looks_load_neither_httpx_nor_prometheus_client() -> None:
    program = (
        "import sys\n"
        "from engine.samples import beat, sampler, sample_record, window, snapshot\n"
        "assert not {'httpx', 'prometheus_client', 'pynvml'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
