"""One run through the command line, where a vLLM has no benchmark that can be called (0.10.0): the same numbers,
dearer by the import of vLLM, and without figures about the client."""

import asyncio
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.bench.group import start_child
from engine.bench.outcome import printed_errors
from engine.bench.protocol import finite
from engine.records import BenchFailed, BenchOutcome, BenchRequest, Installation
from store.clock import utc_now

RESULT_NAME = "result.json"


def bench_command(installation: Installation, request: BenchRequest, result_dir: Path) -> list[str]:
    """The command line that writes the result of `request` to `result_dir`; of options given twice the last counts."""
    keep = ["--save-result", "--result-dir", str(result_dir), "--result-filename", RESULT_NAME]
    return [*installation.command, "bench", "serve", *request.argv, *keep]


async def run_command(
    installation: Installation, environ: Mapping[str, str], log_path: Path, request: BenchRequest
) -> BenchOutcome:
    """Run `vllm bench serve` once. What it prints is appended to `log_path`.

    Raises BenchFailed if it takes longer than the request allows, exits with an error or leaves no result; cancelled
    or not, nothing of it runs on afterwards.
    """
    started_at, began = utc_now(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="llmtune-bench-") as folder:
        argv = bench_command(installation, request, Path(folder))
        child = await start_child(argv, environ, log_path, pipes=False)
        try:
            async with asyncio.timeout(request.timeout_s):
                code = await child.process.wait()
        except TimeoutError:
            raise BenchFailed(timed_out(request, log_path)) from None
        finally:
            await child.kill()
        if code != 0:
            raise BenchFailed(f"vllm bench serve failed: {await child.ending()}")
        result = _read_result(Path(folder) / RESULT_NAME, log_path)
    return BenchOutcome(
        result=result,
        wall_s=time.perf_counter() - began,
        started_at=started_at,
        finished_at=utc_now(),
        via="command",
        errors=printed_errors(child.output()),
    )


def timed_out(request: BenchRequest, log_path: Path) -> str:
    """The line for a run that was ended for taking too long."""
    return (
        f"the benchmark was ended after {request.timeout_s:.0f} s: the server hangs, or the workload needs fewer "
        f"requests; its log is {log_path}"
    )


def _read_result(path: Path, log_path: Path) -> dict[str, Any]:
    try:
        result = finite(json.loads(path.read_text()))
    except FileNotFoundError:
        raise BenchFailed(f"vllm bench serve left no result; its log is {log_path}") from None
    except (OSError, ValueError) as error:
        raise BenchFailed(f"the result of vllm bench serve cannot be read ({error}); its log is {log_path}") from error
    if not isinstance(result, dict):
        raise BenchFailed(f"the result of vllm bench serve is no JSON object; its log is {log_path}")
    return result
