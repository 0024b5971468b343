"""A package called vllm that fails on demand: the real benchmark cannot be made to hang, die or print at will.

Only what the benchmark process touches is there. It stands in for faults alone; that the real one works is shown
against a real server in test_bench_real.py.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from engine.launch.environment import child_environ
from engine.processes.process import MARKER_VARIABLE
from engine.records import Installation

MARKER = "marker-of-this-test"

SERVE = """
import asyncio, gc, json, os, random, signal, sys, time

LOADED_TOKENIZERS = []


def add_cli_args(parser):
    parser.add_argument("--mode", default="well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num-prompts", type=int, default=4)
    parser.add_argument("--save-result", action="store_true")
    parser.add_argument("--result-dir")
    parser.add_argument("--result-filename")


def get_tokenizer(name, *, trust_remote_code=False):
    LOADED_TOKENIZERS.append(name)
    return object()


async def get_request(requests):
    for request in requests:
        yield request


async def benchmark(args):
    failed = args.num_prompts if args.mode == "refused" else 0
    began = time.perf_counter()
    async for _ in get_request(range(args.num_prompts)):
        await asyncio.sleep(0.02)
    if args.mode == "stall":
        time.sleep(0.3)
    duration = time.perf_counter() - began
    return {
        "duration": duration,
        "completed": args.num_prompts - failed,
        "failed": failed,
        "mean_ttft_ms": float("nan") if failed else 1.5,
        "errors": ["Not Found"] * failed or [""] * args.num_prompts,
    }


async def main_async(args):
    print("printed by vllm")
    os.write(1, b"printed by a library\\n")
    get_tokenizer("model", trust_remote_code=False)
    if args.mode == "raise":
        raise ValueError("two\\nlines")
    if args.mode == "exit":
        sys.exit(3)
    if args.mode == "hang":
        with open(os.environ["BEACON"], "a") as beacon:
            while True:
                beacon.write("load\\n")
                beacon.flush()
                await asyncio.sleep(0.01)
    if args.mode == "die":
        print("last words", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    args.num_prompts += 0 if args.mode != "mutate" else 1
    result = {"request_rate": "inf", "num_prompts": args.num_prompts, "seed": args.seed}
    result.update(await benchmark(args))
    result.update(tokenizers_loaded=len(LOADED_TOKENIZERS), infinite=float("inf"))
    result["frozen"] = gc.get_freeze_count()
    cycles = [[] for _ in range(250_000 if args.mode == "leak" else 0)]
    for cycle in cycles:
        cycle.append(cycle)
    gc.freeze()
    del result["errors"]
    result["path"] = sys.path
    result["environ"] = {name: os.environ.get(name) for name in ("PATH", "LLMTUNE_SERVER")}
    return result


def main(args):
    result = asyncio.run(main_async(args))
    if args.mode == "refused":
        print("Failed requests during benchmark run detected (capping to 10):")
        print("Error 0: Not Found")
        print("Error 1: Not Found")
        print("============ Serving Benchmark Result ============")
    if args.mode != "no-result":
        with open(os.path.join(args.result_dir, args.result_filename), "w") as file:
            json.dump(result, file)
"""

COMMAND = """
import argparse, sys
from vllm.benchmarks import serve

parser = argparse.ArgumentParser()
serve.add_cli_args(parser)
assert sys.argv[1:3] == ["bench", "serve"]
serve.main(parser.parse_args(sys.argv[3:]))
"""


def stand_in(folder: Path, serve: str = SERVE) -> tuple[Installation, Mapping[str, str]]:
    """An installation whose vllm is the stand-in with `serve` as its benchmark, and the environment that finds it."""
    package = folder / "site"
    for name, text in (
        ("vllm/__init__.py", '__version__ = "0.0-stand-in"'),
        ("vllm/benchmarks/__init__.py", ""),
        ("vllm/benchmarks/serve.py", serve),
        ("vllm/command.py", COMMAND),
    ):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    bin_dir = folder / "bin"
    bin_dir.mkdir(exist_ok=True)
    installation = Installation(
        path=str(folder),
        python=sys.executable,
        command=(sys.executable, "-m", "vllm.command"),
        bin_dir=str(bin_dir),
        version="0.0-stand-in",
    )
    environ = child_environ(str(bin_dir), os.environ | {"PYTHONPATH": str(package), "BEACON": str(folder / "beacon")})
    environ[MARKER_VARIABLE] = MARKER
    return installation, environ
