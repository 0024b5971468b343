"""A real server to load, and the arguments of small benchmarks that two cores carry in seconds."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.launch.environment import child_environ
from engine.processes.ports import free_port
from engine.processes.process import MARKER_VARIABLE
from engine.records import Installation, ServerSpec
from engine.server import Server

FLAGS = {"enforce-eager": True, "max-model-len": 1024, "gpu-memory-utilization": 0.1}


@contextmanager
def real_server(installation: Installation, model: Path, folder: Path) -> Iterator[Server]:
    """A server of `model` that is ready; stopped in the end."""
    spec = ServerSpec(
        str(model), "127.0.0.1", free_port("127.0.0.1", 8800), FLAGS, "small", env={"HF_HUB_OFFLINE": "1"}
    )

    async def start() -> Server:
        server = await Server.start(installation, spec, log_path=folder / "server.log", marker=f"bench-{os.getpid()}")
        try:
            await server.wait_ready(240)
        except BaseException:
            await server.stop(5)
            raise
        return server

    server = asyncio.run(start())
    try:
        yield server
    finally:
        asyncio.run(server.stop(10))


def bench_environ(installation: Installation) -> dict[str, str]:
    """The environment of the benchmark, as a keeper would make it."""
    base = os.environ | {"HF_HUB_OFFLINE": "1"}
    return child_environ(installation.bin_dir, base) | {MARKER_VARIABLE: f"bench-client-{os.getpid()}"}


def bench_argv(server: Server, seed: int, requests: int, *dataset: str) -> tuple[str, ...]:
    """Arguments after `vllm bench serve`, four requests at a time."""
    model = str(Path(server.spec.model).resolve())
    where = ("--model", model, "--served-model-name", server.served_name, "--base-url", server.base_url)
    load = ("--num-prompts", str(requests), "--seed", str(seed), "--max-concurrency", "4", "--disable-tqdm")
    return (*where, *load, "--temperature", "0", "--percentile-metrics", "ttft,tpot,itl,e2el", *dataset)


def random_dataset(input_len: int, output_len: int) -> tuple[str, ...]:
    lengths = ("--random-input-len", str(input_len), "--random-output-len", str(output_len))
    return ("--dataset-name", "random", *lengths, "--ignore-eos")
