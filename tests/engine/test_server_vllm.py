"""A real vLLM: it starts, says what it has, dies with a cause, and leaves nothing behind."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.discovery import found_servers
from engine.limiting.bottleneck import Limit, what_limits
from engine.limiting.knobs import knobs_of_flags
from engine.processes.ports import free_port, is_free
from engine.processes.process import command_line, marked, send_signal
from engine.records import GpuReading, Installation, LaunchFailed, LogFacts, ServerSample, ServerSpec
from engine.samples.sample_record import to_record
from engine.samples.sampler import Sampler
from engine.scrape.metrics import parse_metrics
from engine.server import Server
from engine.stop import end_leftovers
from store.clock import utc_now
from store.records import SampleRecord

pytestmark = pytest.mark.vllm

EAGER = {"enforce-eager": True, "max-model-len": 1024}
OFFLINE = {"HF_HUB_OFFLINE": "1"}
FEW = {"max-num-seqs": 4, "max-num-batched-tokens": 64}  # so that both limits are met by a small load


class Started:
    """A server that became ready, the stages it went through, and its facts."""

    def __init__(self, server: Server, stages: list[str], facts: LogFacts) -> None:
        self.server, self.stages, self.facts = server, stages, facts


def start(installation: Installation, model: Path, folder: Path, flags: dict[str, Any], marker: str) -> Started:
    spec = ServerSpec(str(model), "127.0.0.1", free_port("127.0.0.1", 8700), {**EAGER, **flags}, "small", OFFLINE)
    stages: list[str] = []

    async def run() -> Started:
        server = await Server.start(installation, spec, log_path=folder / f"{marker}.log", marker=marker)
        try:
            facts = await server.wait_ready(240, lambda stage, facts: stages.append(stage))
        except BaseException:
            await server.stop(5)
            raise
        return Started(server, stages, facts)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def smaller(installation: Installation, model_dir: Path, folder: Path) -> Iterator[Started]:
    flags = {"gpu-memory-utilization": 0.10, **FEW}
    started = start(installation, model_dir, folder, flags, f"smaller-{os.getpid()}")
    yield started
    asyncio.run(started.server.stop(10))


@pytest.fixture(scope="module")
def larger(installation: Installation, model_dir: Path, folder: Path) -> Iterator[Started]:
    flags = {"gpu-memory-utilization": 0.15, **FEW}
    started = start(installation, model_dir, folder, flags, f"larger-{os.getpid()}")
    yield started
    asyncio.run(started.server.stop(10))


def test_a_ready_server_has_told_its_facts(smaller: Started) -> None:
    assert smaller.stages[0] == "spawned"
    assert smaller.stages[-1] == "ready"
    assert {"loading", "weights", "kv_cache"} <= set(smaller.stages)
    assert len(smaller.stages) == len(set(smaller.stages))
    assert smaller.facts.kv_cache_tokens is not None
    assert smaller.facts.kv_cache_tokens > 0
    assert smaller.facts.load_s is not None
    assert smaller.server.log_path.stat().st_mode & 0o777 == 0o600


def test_its_engine_core_is_found_as_descendant_and_by_its_marker(smaller: Started) -> None:
    titles = {process: command_line(process.pid) or "" for process in smaller.server.descendants()}
    engine = next(process for process, title in titles.items() if "EngineCore" in title)
    assert engine in marked(smaller.server.marker)  # setproctitle would have wiped the marker away


def test_it_is_found_and_sampled_as_a_stranger_s_would_be(smaller: Started, installation: Installation) -> None:
    server = smaller.server
    (found,) = [one for one in found_servers() if one.url == server.base_url]
    assert (found.pid, found.name) == (server.identity.pid, "small")
    assert (found.flags["max-num-seqs"], found.flags["max-num-batched-tokens"]) == (4, 64)

    async def look() -> tuple[ServerSample | None, str | None]:
        async with Sampler(found.url, None) as sampler:
            await sampler.once()
            sample, _, error = await sampler.once()  # the second reads the numbers alone
            return sample, error

    sample, error = asyncio.run(look())
    assert error is None
    assert sample is not None
    assert sample.version is not None
    assert installation.version.startswith(sample.version.partition("+")[0])
    assert (sample.model_name, sample.unknown, sample.sleep_state) == ("small", (), "awake")
    assert sample.kv_cache_tokens == smaller.facts.kv_cache_tokens
    assert len(sample.histograms) == 10


def test_kv_tokens_follow_the_utilization(smaller: Started, larger: Started) -> None:
    assert smaller.facts.kv_cache_tokens is not None
    assert larger.facts.kv_cache_tokens is not None
    assert larger.facts.kv_cache_tokens > smaller.facts.kv_cache_tokens * 1.2


def limited_by(server: Server, prompt_tokens: int, output_tokens: int, clients: int = 8, seconds: float = 8) -> Limit:
    """What limits it while so many clients send one such request after the other."""
    url, version = server.base_url, server.installation.version if server.installation else None

    async def ask(http: httpx.AsyncClient, number: int) -> None:
        dice = random.Random(number)
        while True:
            body = {
                "model": "small",
                "prompt": [dice.randrange(1000, 40000) for _ in range(prompt_tokens)],
                "max_tokens": output_tokens,
                "ignore_eos": True,
            }
            (await http.post(f"{url}/v1/completions", json=body)).raise_for_status()

    async def run() -> list[SampleRecord]:
        samples = []
        async with httpx.AsyncClient(timeout=60) as http:
            clients_at_work = [asyncio.create_task(ask(http, number)) for number in range(clients)]
            for _ in range(int(seconds / 0.5)):
                page = (await http.get(f"{url}/metrics")).text
                samples.append(to_record(parse_metrics(page, utc_now(), time.monotonic()), GpuReading("", 0.0)))
                await asyncio.sleep(0.5)
            for task in clients_at_work:
                task.cancel()
            await asyncio.gather(*clients_at_work, return_exceptions=True)
        return samples

    samples = asyncio.run(run())
    limit = what_limits(samples, knobs_of_flags(server.spec.flags, samples[-1], version=version))
    assert limit is not None
    return limit


def test_more_clients_than_max_num_seqs_make_it_sequence_bound(smaller: Started) -> None:
    limit = limited_by(smaller.server, prompt_tokens=8, output_tokens=200)
    assert limit.kind == "sequences", limit
    assert "Raise max-num-seqs (now 4)" in limit.advice


def test_long_prompts_and_a_small_budget_make_it_token_budget_bound(smaller: Started) -> None:
    limit = limited_by(smaller.server, prompt_tokens=960, output_tokens=1)
    assert limit.kind == "token_budget", limit
    assert "max-num-batched-tokens (now 64)" in limit.advice


def test_without_a_load_it_is_idle(smaller: Started) -> None:
    time.sleep(1)  # what the clients of the tests before left
    assert limited_by(smaller.server, 1, 1, clients=0, seconds=4).kind == "idle"


def test_what_a_killed_api_server_leaves_is_ended(larger: Started) -> None:
    server = larger.server
    recorded = server.descendants()
    assert send_signal(server.identity, signal.SIGKILL)
    while server.poll() is None:
        time.sleep(0.05)
    assert any("EngineCore" in (command_line(process.pid) or "") for process in marked(server.marker))
    report = asyncio.run(end_leftovers(server.identity, server.pgid, server.marker, recorded, grace_s=10))
    assert report.survivors == ()
    assert len(report.ended) >= 1
    assert marked(server.marker) == []
    assert server.poll() == -signal.SIGKILL
    assert is_free(server.spec.host, server.spec.port)


def test_stop_leaves_no_process_and_frees_the_port(smaller: Started) -> None:
    server = smaller.server
    report = asyncio.run(server.stop(20))
    assert report.exit_code is not None
    assert report.port_free
    assert len(report.ended) >= 2
    assert marked(server.marker) == []
    assert is_free(server.spec.host, server.spec.port)


def test_a_server_that_dies_while_loading_says_why(installation: Installation, model_dir: Path, folder: Path) -> None:
    with pytest.raises(LaunchFailed, match="999999") as failure:
        start(installation, model_dir, folder, {"max-model-len": 999999}, f"dying-{os.getpid()}")
    assert failure.value.failure_class == "model_len_invalid"
    assert failure.value.exit_code not in (0, None)
    assert "\n" not in str(failure.value)
