"""The benchmark process against a real server: same numbers as the command line, and nothing goes on after it."""

import asyncio
import json
import math
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from engine.bench.client import Bench, open_bench
from engine.bench.command import run_command
from engine.bench.outcome import no_success
from engine.records import BenchRequest, Installation
from engine.scrape.metrics import parse_metrics
from engine.server import Server
from store.clock import parse_utc, utc_now
from tests.engine.bench_server import bench_argv, bench_environ, random_dataset, real_server

pytestmark = [pytest.mark.vllm, pytest.mark.asyncio(loop_scope="module")]

RANDOM = random_dataset(64, 16)
PREFIX = (
    *("--dataset-name", "prefix_repetition", "--ignore-eos"),
    *("--prefix-repetition-prefix-len", "64", "--prefix-repetition-suffix-len", "16"),
    *("--prefix-repetition-num-prefixes", "2", "--prefix-repetition-output-len", "8"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def server(installation: Installation, model_dir: Path, folder: Path) -> Iterator[Server]:
    with real_server(installation, model_dir, folder) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(server: Server, installation: Installation, folder: Path) -> AsyncIterator[Bench]:
    # After the server, so that its memory profiling is not disturbed.
    bench = await open_bench(installation, bench_environ(installation), folder / "bench.log")
    yield bench
    await bench.close()


def asks(server: Server, seed: int, requests: int, *dataset: str) -> BenchRequest:
    return BenchRequest(bench_argv(server, seed, requests, *dataset), 90)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers(item)


async def test_two_runs_with_their_own_seeds(bench: Bench, server: Server) -> None:
    first = await bench.run(asks(server, 1, 8, *RANDOM))
    identity = bench.identity
    second = await bench.run(asks(server, 2, 8, *RANDOM))
    assert bench.identity == identity
    for outcome in (first, second):
        assert outcome.via == "process"
        assert (outcome.result["completed"], outcome.result["failed"]) == (8, 0)
        assert outcome.result["total_output_tokens"] == 8 * 16
        assert outcome.result["request_rate"] == "inf"
        assert outcome.result["p99_e2el_ms"] > outcome.result["mean_ttft_ms"] > 0
        assert all(math.isfinite(number) for number in numbers(outcome.result))
        assert 0 < (outcome.client_cpu_perc or 0) < 150
        assert outcome.client_lag_p99_ms is not None
        assert outcome.started_at <= str(outcome.load_started_at) <= outcome.finished_at
        assert outcome.errors == ()
        assert no_success(outcome) is None
    load = (parse_utc(second.finished_at) - parse_utc(str(second.load_started_at))).total_seconds()
    assert load == pytest.approx(second.result["duration"], abs=2)
    # Importing vLLM anew costs ten times this; the tokenizer, which the first run has loaded, nearly a second.
    assert second.wall_s - second.result["duration"] < 3


async def test_prefix_repetition(bench: Bench, server: Server) -> None:
    outcome = await bench.run(asks(server, 3, 6, *PREFIX))
    assert outcome.result["completed"] == 6
    assert outcome.result["total_output_tokens"] == 6 * 8


async def test_sharegpt_file(bench: Bench, server: Server, folder: Path) -> None:
    path = folder / "conversations.json"
    question = "Please tell me in a few words what stands in chapter number {} of the book about the sea."
    answer = "It tells of a ship which left its harbour in the early morning."
    talks = [
        {"conversations": [{"from": "human", "value": question.format(number)}, {"from": "gpt", "value": answer}]}
        for number in range(6)
    ]
    path.write_text(json.dumps(talks))
    dataset = ("--dataset-name", "sharegpt", "--dataset-path", str(path), "--sharegpt-output-len", "8", "--ignore-eos")
    outcome = await bench.run(asks(server, 4, 4, *dataset))
    assert outcome.result["completed"] == 4
    assert outcome.result["total_output_tokens"] == 4 * 8


async def test_every_request_refused(bench: Bench, server: Server) -> None:
    argv = bench_argv(server, 5, 3, *RANDOM, "--served-model-name", "another-model")
    outcome = await bench.run(BenchRequest(argv, 60))
    assert outcome.result["completed"] == 0
    assert "none of 3 requests" in str(no_success(outcome))
    assert "Not Found" in outcome.errors[0]


async def test_result_has_the_keys_of_the_command_line(
    bench: Bench, server: Server, installation: Installation, folder: Path
) -> None:
    request = asks(server, 6, 4, *RANDOM, "--goodput", "ttft:5000", "tpot:5000")
    by_process = await bench.run(request)
    by_command = await run_command(installation, bench_environ(installation), folder / "command.log", request)
    assert by_command.via == "command"
    assert list(by_process.result) == list(by_command.result)
    same = ("total_input_tokens", "total_output_tokens", "completed", "failed", "num_prompts", "max_concurrency")
    assert {key: by_process.result[key] for key in same} == {key: by_command.result[key] for key in same}


async def test_a_cancelled_run_leaves_the_server_idle(bench: Bench, server: Server) -> None:
    """Last: the process has to import vLLM again after it."""
    run = asyncio.create_task(bench.run(asks(server, 7, 64, *random_dataset(64, 512))))
    await until(lambda: in_work(server) > 0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert bench.identity is None
    await until(lambda: in_work(server) == 0)


def in_work(server: Server) -> float:
    with urllib.request.urlopen(f"{server.base_url}/metrics", timeout=10) as page:
        sample = parse_metrics(page.read().decode(), utc_now(), 0.0)
    return (sample.running or 0) + (sample.waiting or 0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110  only the server can tell
            await asyncio.sleep(0.2)
