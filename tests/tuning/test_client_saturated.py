"""vLLM's own benchmark against a server that streams faster than one client can read: the client's load is measured in
its process, and the run is rejected for it, whatever latencies it tells."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.bench.client import open_bench
from engine.records import BenchRequest, Installation
from tests.engine.bench_server import bench_environ
from tests.tuning.examples import random_workload
from tuning.checks.acceptance import findings, rejects
from tuning.checks.finding import RunFacts
from tuning.plans.workload_args import bench_argv
from tuning.run_metrics import run_metrics

CHUNKS = 2000  # of an answer
FAST = random_workload(
    requests=48, max_concurrency=16, shape={"input_len": 16, "output_len": CHUNKS, "range_ratio": 0.0, "prefix_len": 0}
)
SLOW = random_workload(
    requests=8, max_concurrency=4, shape={"input_len": 16, "output_len": 20, "range_ratio": 0.0, "prefix_len": 0}
)


class Streamer:
    """Answers each completion with as many chunks as it asks for tokens: all at once, or `pause_s` apart."""

    def __init__(self) -> None:
        self.pause_s = 0.0
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        tokens = json.loads(await reader.readexactly(length))["max_tokens"]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        chunk = b'data: {"choices": [{"text": " x"}]}\n\n'
        if self.pause_s:
            for _ in range(tokens):
                writer.write(chunk)
                await asyncio.sleep(self.pause_s)
        else:
            writer.write(chunk * tokens)
        usage = {"choices": [], "usage": {"prompt_tokens": 16, "completion_tokens": tokens}}
        writer.write(b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n")
        await writer.drain()
        writer.close()


@pytest.fixture
async def streamer() -> AsyncIterator[Streamer]:
    streamer = Streamer()
    server = await asyncio.start_server(streamer.answer, "127.0.0.1", 0)
    streamer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield streamer


@pytest.mark.vllm
async def test_a_saturated_client_is_measured_and_rejected(
    installation: Installation, model_dir: Path, tmp_path: Path, streamer: Streamer
) -> None:
    bench = await open_bench(installation, bench_environ(installation), tmp_path / "bench.log")
    found: list[RunFacts] = []
    try:
        for workload, pause_s in ((SLOW, 0.05), (FAST, 0.0)):
            streamer.pause_s = pause_s
            argv = bench_argv(workload, str(model_dir.resolve()), "m", streamer.url, 1, installation.version)
            outcome = await bench.run(BenchRequest(argv, 120))
            found.append(RunFacts(workload, outcome, run_metrics(outcome, [])))
    finally:
        await bench.close()
    slow, fast = found
    assert slow.metrics["requests_completed"] == 8
    assert rejects(findings(slow)) is None
    assert 0 < (slow.metrics["client_cpu_perc"] or 0) < 60
    assert fast.metrics["requests_completed"] == 48
    assert fast.metrics["output_tokens"] == 48 * CHUNKS
    # What a saturated client makes of it: tokens that came in one read seem to have taken no time.
    assert (fast.metrics["median_itl_ms"] or 1) < 0.2
    reason = rejects(findings(fast))
    assert reason is not None
    assert "the load generator was" in reason
