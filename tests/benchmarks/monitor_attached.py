"""What watching costs: the throughput of a server under load with the Monitor attached and without, by turns.

    python -m tests.benchmarks.monitor_attached --model MODEL [--vllm PATH] [--pairs 8] [-- flags of `vllm serve`]

A tool that is run by hand, on a machine with a GPU above all. In each pair the same load is sent twice with seeds of
their own, once while `llmtune monitor` at 1 Hz draws on a terminal of 120x40; which comes first changes from pair to
pair. The first pair is a warm-up and does not count. Prints one JSON object: the ratio − 1 of the total throughputs
with its 95 % interval (Student's t on the logs of the pairs), and the same of the mean time to the first token.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.bench.client import Bench, open_bench
from engine.launch.environment import child_environ
from engine.launch.installation import find_vllm
from engine.processes.ports import free_port
from engine.processes.process import MARKER_VARIABLE
from engine.records import BenchRequest, ServerSpec
from engine.server import Server
from tests.terminal import Terminal
from tuning.statistics import paired_ratio

METRICS = ("total_token_throughput", "mean_ttft_ms")
READY_WITHIN_S = 600.0


@contextlib.contextmanager
def monitor(url: str, data_dir: Path) -> Iterator[None]:
    """The Monitor on a terminal of its own."""
    command = [sys.executable, "-m", "tui.cli", "monitor", "--url", url, "--data-dir", str(data_dir)]
    with Terminal(command, (120, 40)) as terminal:
        terminal.wait_for("answers|ready")
        yield
        terminal.press(b"q")
        terminal.process.wait(20)


async def load(bench: Bench, server: Server, args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """The result of one `vllm bench serve`."""
    argv = (
        "--model", str(Path(args.model).resolve()), "--served-model-name", server.served_name,
        "--base-url", server.base_url, "--num-prompts", str(args.requests), "--seed", str(seed),
        "--max-concurrency", str(args.concurrency), "--disable-tqdm", "--temperature", "0",
        "--percentile-metrics", "ttft,tpot,itl,e2el", "--dataset-name", "random", "--ignore-eos",
        "--random-input-len", str(args.input_len), "--random-output-len", str(args.output_len),
    )  # fmt: skip
    return (await bench.run(BenchRequest(argv, 900))).result


async def pair(
    bench: Bench, server: Server, args: argparse.Namespace, number: int, data_dir: Path
) -> dict[bool, dict[str, Any]]:
    """The results by whether the Monitor was attached."""
    results: dict[bool, dict[str, Any]] = {}
    for turn, attached in enumerate((False, True) if number % 2 else (True, False)):
        with monitor(server.base_url, data_dir) if attached else contextlib.nullcontext():
            results[attached] = await load(bench, server, args, 2 * number + turn)
    return results


async def measure(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    installation = find_vllm(args.vllm, os.environ)
    marker = f"monitor-attached-{os.getpid()}"
    spec = ServerSpec(args.model, "127.0.0.1", free_port("127.0.0.1", 8700), {}, "watched", {}, tuple(args.flags))
    server = await Server.start(installation, spec, log_path=folder / "server.log", marker=marker)
    try:
        await server.wait_ready(READY_WITHIN_S)
        environ = child_environ(installation.bin_dir, os.environ) | {MARKER_VARIABLE: marker}
        bench = await open_bench(installation, environ, folder / "bench.log")
        try:
            pairs = [await pair(bench, server, args, number, folder / "data") for number in range(args.pairs + 1)][1:]
        finally:
            await bench.close()
    finally:
        await server.stop(20)
    found: dict[str, Any] = {"vllm": installation.version, "pairs": len(pairs)}
    for metric in METRICS:
        logs = {
            attached: {at: [math.log(both[attached][metric])] for at, both in enumerate(pairs)}
            for attached in (False, True)
        }
        ratio = paired_ratio(logs[True], logs[False])
        assert ratio is not None
        found[metric] = {
            "without": [round(both[False][metric], 1) for both in pairs],
            "with": [round(both[True][metric], 1) for both in pairs],
            "effect": ratio.mean, "low": ratio.low, "high": ratio.high,
        }  # fmt: skip
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--vllm")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--input-len", type=int, default=256)
    parser.add_argument("--output-len", type=int, default=64)
    parser.add_argument("flags", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="monitor-attached-") as folder:
        print(json.dumps(asyncio.run(measure(args, Path(folder)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
