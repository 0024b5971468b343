"""vLLM's own serving benchmark, run again and again in one process, so that vLLM is imported only once.

Runs as a script in the Python that vLLM lives in (3.9 or newer) and imports nothing of the program that starts it.

Protocol, one JSON object a line. Standard input brings requests and standard output takes answers; both are moved away
at once and file descriptor 1 is made standard error, so whatever vLLM or a C library prints lands in the log.

    first answer  {"ready": true, "vllm": "0.32.0", "import_s": 10.1} or {"ready": false, "why": "…"}, which ends it
    request       {"id": 1, "argv": ["--dataset-name", "random", …]}, as after `vllm bench serve`
    answer        {"id": 1, "result": {…}, "errors": ["…"], "load_started": 1764500000.0, "client_cpu_perc": 31.0,
                   "client_lag_p99_ms": 1.2}, or {"id": 1, "failure": "ValueError: …"}

The end of standard input ends the process at once, in the middle of a run too: no load without someone who wants it.
"""

from __future__ import annotations

import argparse
import array
import asyncio
import gc
import importlib
import json
import logging
import math
import os
import queue
import sys
import threading
import time
from typing import Any, BinaryIO

ERRORS_KEPT = 50
ERROR_CHARACTERS = 4000
FROZEN_KEPT = 200_000  # objects

log = logging.getLogger("llmtune_bench_process")


class ArgumentsRefused(Exception):
    """vLLM's parser does not take these arguments."""


class NotUsable(Exception):
    """This vLLM has no benchmark that can be called; the text says what is missing."""


class LoadWatch:
    """Whether the client itself was the bottleneck: lag of its event loop and its CPU use while the load ran."""

    STEP_S = 0.010

    def __init__(self) -> None:
        self.began_wall: float | None = None
        self._began = 0.0
        self._began_cpu = 0.0
        self._next = math.inf
        self._due = array.array("d")
        self._woke = array.array("d")
        self._cpu = array.array("d")

    def load_begins(self) -> None:
        self.began_wall, self._began, self._began_cpu = time.time(), time.perf_counter(), time.process_time()
        for ticks in (self._due, self._woke, self._cpu):
            del ticks[:]

    async def tick(self) -> None:
        """A timer on a fixed grid, until it is cancelled."""
        self._next = time.perf_counter() + self.STEP_S
        while True:
            await asyncio.sleep(max(0.0, self._next - time.perf_counter()))
            self.catch_up(time.perf_counter(), time.process_time())

    def catch_up(self, now: float, cpu: float) -> None:
        """Note all ticks that were due. Every one that fell into a long stall counts with its own lag: else a stall of
        a second would be a single late tick among thousands, and no percentile would show it."""
        while self._next <= now:
            self._due.append(self._next)
            self._woke.append(now)
            self._cpu.append(cpu)
            self._next += self.STEP_S

    def figures(self, duration_s: float) -> dict[str, float | None]:
        """99th percentile of the lag in ms and CPU use in percent of one core, over the `duration_s` of the load alone:
        prompts before it and percentiles after it block the loop without harm."""
        end = self._began + duration_s
        lags = [min(self._woke[i], end) - due for i, due in enumerate(self._due) if self._began <= due <= end]
        inside = [i for i, woke in enumerate(self._woke) if self._began < woke <= end]
        if self.began_wall is None or not lags or not inside:
            return {"client_lag_p99_ms": None, "client_cpu_perc": None}
        last = inside[-1]
        return {
            "client_lag_p99_ms": 1000 * percentile(lags, 99),
            "client_cpu_perc": 100 * (self._cpu[last] - self._began_cpu) / (self._woke[last] - self._began),
        }


def percentile(values: list[float], q: float) -> float:
    """Linear interpolation between order statistics, as numpy.percentile does by default."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * q / 100
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


class Benchmark:
    """`vllm.benchmarks.serve`, with what is asked anew in each run kept and the load marked off from the rest.

    Its functions look each other up in their module, so replacing one there is enough. Any of the replaced may be
    missing in some version: then only what it serves is missing.
    """

    def __init__(self, serve: Any) -> None:
        if not hasattr(serve, "main_async"):
            raise NotUsable("vllm.benchmarks.serve has no main_async")  # vLLM 0.10.0 and 0.10.1
        self._serve = serve
        self._parser = argument_parser(serve)
        self._watch = LoadWatch()
        self._errors: list[str] = []
        self._keep_tokenizer()
        self._mark_load()
        self._keep_errors()
        gc.collect()
        gc.freeze()
        self._frozen = gc.get_freeze_count()

    def run(self, argv: list[str]) -> dict[str, Any]:
        """One run of the benchmark: what `--save-result` would write, and what it leaves out."""
        self._watch, self._errors = LoadWatch(), []
        # Parsed anew for each run, as main_async writes into what it is given.
        args = self._parser.parse_args(argv)
        try:
            result = asyncio.run(self._main(args))
        finally:
            self._thaw()
        return {
            "result": result,
            "errors": self._errors,
            "load_started": self._watch.began_wall,
            **self._watch.figures(float(result.get("duration", 0.0))),
        }

    async def _main(self, args: argparse.Namespace) -> dict[str, Any]:
        ticker = asyncio.ensure_future(self._watch.tick())
        try:
            result: dict[str, Any] = await self._serve.main_async(args)
            return result
        finally:
            self._watch.catch_up(time.perf_counter(), time.process_time())
            ticker.cancel()

    def _thaw(self) -> None:
        # main_async freezes all that is alive before its load, so what a run leaves in cycles would never be freed. But
        # thawing brings back the 600,000 objects of vLLM itself, and the next run takes a second to look through them.
        if gc.get_freeze_count() > self._frozen + FROZEN_KEPT:
            gc.unfreeze()

    def _keep_tokenizer(self) -> None:
        original = getattr(self._serve, "get_tokenizer", None)
        if original is None:
            return
        kept: dict[str, Any] = {}

        def get_tokenizer(*args: Any, **options: Any) -> Any:
            key = repr((args, sorted(options.items())))
            if key not in kept:
                kept[key] = original(*args, **options)
            return kept[key]

        self._serve.get_tokenizer = get_tokenizer

    def _mark_load(self) -> None:
        # `duration` of the result counts from just before the first request is drawn.
        original = getattr(self._serve, "get_request", None)
        if original is None:
            return

        def get_request(*args: Any, **options: Any) -> Any:
            self._watch.load_begins()
            return original(*args, **options)

        self._serve.get_request = get_request

    def _keep_errors(self) -> None:
        # main_async drops the errors of the requests unless it is told to keep every token's time as well.
        original = getattr(self._serve, "benchmark", None)
        if original is None:
            return

        async def benchmark(*args: Any, **options: Any) -> Any:
            result = await original(*args, **options)
            distinct = dict.fromkeys(str(error)[-ERROR_CHARACTERS:] for error in result.get("errors") or () if error)
            self._errors = list(distinct)[:ERRORS_KEPT]
            return result

        self._serve.benchmark = benchmark


def argument_parser(serve: Any) -> argparse.ArgumentParser:
    """vLLM's parser, which raises ArgumentsRefused where it would print its usage and exit."""
    parser: argparse.ArgumentParser = parser_class()(prog="vllm bench serve")

    def refuse(message: str) -> None:
        raise ArgumentsRefused(message)

    parser.error = refuse  # type: ignore[method-assign, assignment]
    serve.add_cli_args(parser)
    return parser


def parser_class() -> Any:
    """FlexibleArgumentParser, which some of vLLM's options need; its module has moved over the versions."""
    for name in ("vllm.utils.argparse_utils", "vllm.utils"):
        try:
            return importlib.import_module(name).FlexibleArgumentParser
        except (ImportError, AttributeError):
            continue
    return argparse.ArgumentParser


def load_benchmark() -> Benchmark:
    """Import vLLM's benchmark. Raises NotUsable, with the reason, where that fails in whatever way."""
    try:
        return Benchmark(importlib.import_module("vllm.benchmarks.serve"))
    except (Exception, SystemExit) as error:
        log.exception("vLLM's benchmark cannot be loaded")
        raise NotUsable(one_line(error)) from error


def one_line(error: BaseException) -> str:
    """The kind and text of an error, on one line."""
    text = " ".join(str(error).split())
    if isinstance(error, (ArgumentsRefused, NotUsable)):
        return text
    return type(error).__name__ + (": " + text if text else "")


def plain(value: Any) -> Any:
    """numpy's scalars and arrays as JSON has them; anything else by its text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def answer(benchmark: Benchmark, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request. Whatever vLLM raises, argparse's exit among it, is the answer: the process goes on."""
    try:
        return {"id": request["id"], **benchmark.run(request["argv"])}
    except (Exception, SystemExit) as error:
        log.exception("the run failed")
        return {"id": request["id"], "failure": one_line(error)}


def forget_own_folder() -> None:
    """Python puts a script's folder on the path: nothing of ours may be imported from there in vLLM's place."""
    own = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.realpath(entry) != own]


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the caller, out of reach of everything that prints."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def receive(requests: BinaryIO, inbox: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in requests:
        inbox.put(json.loads(line))
    os._exit(0)


def send(answers: BinaryIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message, default=plain).encode() + b"\n")
    answers.flush()


def main() -> int:
    forget_own_folder()
    requests, answers = take_pipes()
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=receive, args=(requests, inbox), daemon=True).start()
    began = time.perf_counter()
    try:
        benchmark = load_benchmark()
    except NotUsable as error:
        send(answers, {"ready": False, "why": one_line(error)})
        return 0
    version = getattr(sys.modules.get("vllm"), "__version__", None)
    send(answers, {"ready": True, "vllm": version, "import_s": time.perf_counter() - began})
    while True:
        send(answers, answer(benchmark, inbox.get()))


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(name)s: %(message)s")
    sys.exit(main())
