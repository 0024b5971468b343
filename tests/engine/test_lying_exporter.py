"""The exporter itself: an honest page reads as what was served, and each lie is one line to the Sampler, in time."""

import asyncio

import pytest

from engine.scrape.metrics import parse_metrics
from tests.lying_exporter import BEHAVIOURS, LyingExporter
from tests.served_pages import ABSURD, HOSTILE_NAMES, Served


def clocked(**settings: object) -> tuple[Served, list[float]]:
    now = [0.0]
    return Served(clock=lambda: now[0], **settings), now  # type: ignore[arg-type]


@pytest.mark.parametrize("names", ["new", "old", "v0", "rust"])
def test_an_honest_page_reads_as_what_was_served(names: str) -> None:
    served, now = clocked(names=names, running=7, waiting=2, kv=0.25, preemptions_per_s=1, engines=1)
    now[0] = 10.0
    found = parse_metrics(served.page(), "", 0.0)
    assert (found.model_name, found.running, found.waiting, found.kv_perc) == ("m", 7.0, 2.0, 25.0)
    assert (found.prompt_tokens, found.generation_tokens, found.preemptions) == (10_000.0, 5_000.0, 10.0)
    assert (found.prefix_queries, found.prefix_hits) == (10_000.0, 2_500.0)
    assert found.requests_finished == {"stop": 100.0}
    assert found.histograms["itl"].count == 100.0
    assert ("tpot" in found.histograms) == (names in ("new", "rust"))
    assert (found.process_start is None) == (names == "rust")
    assert found.unknown == ()


def test_several_engines_adapters_and_speculation() -> None:
    served, now = clocked(engines=3, adapters=("a b", "[/c]"), drafts_per_s=10, rejected_per_s=1)
    now[0] = 10.0
    found = parse_metrics(served.page(), "", 0.0)
    assert (found.running, found.kv_perc, len(found.engines)) == (9.0, 40.0, 3)
    assert found.lora is not None
    assert found.lora.running == ("a b", "[/c]")
    assert found.counters["spec_drafts"] == 300.0
    assert found.spec_accepted_by_position["0"] == 240.0
    assert found.rejections == {"max_num_queued_reqs": 10.0}


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_of_any_kind(name: str) -> None:
    found = parse_metrics(Served(model=name).page(), "", 0.0)
    assert found.running == 3.0
    assert found.model_name


@pytest.mark.parametrize("absurd", ABSURD)
def test_absurd_numbers(absurd: str) -> None:
    parse_metrics(Served(absurd=absurd).page(), "", 0.0)


async def get(url: str, path: str = "/metrics", within_s: float = 5.0) -> bytes:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    try:
        async with asyncio.timeout(within_s):
            return await reader.read(2000)
    finally:
        writer.close()


async def test_it_answers_dies_and_returns_on_the_same_port() -> None:
    async with LyingExporter() as exporter:
        assert b"200 OK" in await get(exporter.url)
        assert b'"version":"0.32.0"' in await get(exporter.url, "/version")
        exporter.behave("refuse")
        with pytest.raises(OSError):
            await get(exporter.url)
        exporter.behave("answer")
        assert b"200 OK" in await get(exporter.url)
        exporter.behave("hang")
        with pytest.raises(TimeoutError):
            await get(exporter.url, within_s=0.2)
        exporter.behave("503")
        assert b"503" in await get(exporter.url)
        assert exporter.asked.count("/metrics") == 4


@pytest.mark.parametrize("behaviour", sorted(BEHAVIOURS.keys() - {"refuse", "hang", "slow", "drop"}))
async def test_every_other_behaviour_says_something(behaviour: str) -> None:
    async with LyingExporter(behaviour=behaviour) as exporter:
        assert await get(exporter.url)


async def test_another_process_can_steer_it() -> None:
    async with LyingExporter() as exporter:
        await get(exporter.url, "/-/restart")
        assert exporter.served.life == 1
        await get(exporter.url, "/-/behave/500")
        await asyncio.sleep(0.1)
        assert b"500" in await get(exporter.url)
