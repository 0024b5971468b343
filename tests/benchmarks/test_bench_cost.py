"""What a run costs beyond its load, through the process that stays loaded and through `vllm bench serve` anew."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from engine.bench.client import open_bench
from engine.bench.command import run_command
from engine.records import BenchOutcome, BenchRequest, Installation
from engine.server import Server
from tests.engine.bench_server import bench_argv, bench_environ, random_dataset, real_server

pytestmark = pytest.mark.benchmark

PAIRS = 3
GOAL = 1 / 6


def beyond_load(outcome: BenchOutcome) -> float:
    return outcome.wall_s - float(outcome.result["duration"])


@pytest.fixture
def server(installation: Installation, model_dir: Path, tmp_path: Path) -> Iterator[Server]:
    with real_server(installation, model_dir, tmp_path) as server:
        yield server


async def test_a_run_costs_a_sixth_of_the_command(
    server: Server, installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = bench_environ(installation)
    by_process: list[float] = []
    by_command: list[float] = []
    bench = await open_bench(installation, environ, tmp_path / "bench.log")
    try:
        for pair in range(PAIRS):
            first, second = (
                BenchRequest(bench_argv(server, 2 * pair + way, 16, *random_dataset(64, 16)), 120) for way in (0, 1)
            )
            by_process.append(beyond_load(await bench.run(first)))
            by_command.append(beyond_load(await run_command(installation, environ, tmp_path / "command.log", second)))
    finally:
        await bench.close()
    ratio = median(by_process) / median(by_command)
    with capsys.disabled():
        print(
            f"\ncost of a run beyond its load, s: process {[round(s, 2) for s in by_process]} (the first loads the "
            f"tokenizer), command {[round(s, 2) for s in by_command]}; ratio of medians {ratio:.3f}, goal {GOAL:.3f}"
        )
    assert ratio < 1
