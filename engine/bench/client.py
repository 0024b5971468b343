"""Runs of `vllm bench serve` against a server, by whichever way the vLLM at hand allows."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from engine.bench.command import run_command, timed_out
from engine.bench.loaded import LoadedBench, NoEntryPoint
from engine.bench.outcome import distinct_errors
from engine.bench.protocol import Answer
from engine.records import BenchFailed, BenchOutcome, BenchRequest, Installation, ProcessIdentity
from engine.text import clean
from store.clock import format_utc, utc_now

READY_TIMEOUT_S = 300.0


async def open_bench(
    installation: Installation,
    environ: Mapping[str, str],
    log_path: Path,
    *,
    ready_timeout_s: float = READY_TIMEOUT_S,
) -> "Bench":
    """Start the benchmark process and wait until it has imported vLLM.

    `environ` is the whole environment of what we start: `child_environ` of engine.launch.environment and the marker
    that finds it again. What vLLM prints is appended to `log_path`. Where this vLLM has no benchmark that can be
    called, each run goes through its command line instead. Not while a server starts: it needs half a gigabyte of
    memory, and a server on the CPU that sees memory vanish while it measures its own use gives up.

    Raises BenchFailed if the process dies or is not ready within `ready_timeout_s`.
    """
    bench = Bench(installation, environ, log_path, ready_timeout_s)
    await bench.start()
    return bench


class Bench:
    """Takes runs, one at a time. Made by `open_bench`; `close` it in the end."""

    def __init__(
        self, installation: Installation, environ: Mapping[str, str], log_path: Path, ready_timeout_s: float
    ) -> None:
        self._installation = installation
        self._environ = dict(environ)
        self._log_path = log_path
        self._ready_timeout_s = ready_timeout_s
        self._loaded: LoadedBench | None = None
        self._turn = asyncio.Lock()
        self.no_process: str | None = None  # why runs go through the command line, if they do

    @property
    def identity(self) -> ProcessIdentity | None:
        """The process that stays loaded; None while there is none. It leads a process group of its own."""
        return self._loaded.identity if self._loaded is not None and self._loaded.running else None

    async def start(self) -> None:
        """Load the process unless it is there. A run does so by itself after one that was cancelled or timed out."""
        if self._loaded is not None and not self._loaded.running:
            await self._discard()
        if self._loaded is not None or self.no_process is not None:
            return
        try:
            self._loaded = await LoadedBench.start(
                self._installation, self._environ, self._log_path, self._ready_timeout_s
            )
        except NoEntryPoint as error:
            self.no_process = str(error)

    async def run(self, request: BenchRequest) -> BenchOutcome:
        """One run. One in which no request succeeded is an outcome too: see `outcome.no_success`.

        `wall_s` counts from the call, so it includes loading the process again where that was needed; `timeout_s` of
        the request does not. Raises BenchFailed if vLLM refused or raised, the process died or the time was up. When
        this returns or raises, cancelled or not, no load goes on.
        """
        async with self._turn:
            started_at, began = utc_now(), time.perf_counter()
            await self.start()
            if self._loaded is None:
                return await run_command(self._installation, self._environ, self._log_path, request)
            answer = await self._ask(self._loaded, request)
            if answer.failure is not None:
                raise BenchFailed(f"vLLM's benchmark did not run: {clean(answer.failure, 400)}")
            return _outcome(answer, started_at, time.perf_counter() - began)

    async def close(self) -> None:
        """End the process. A run in progress must have been cancelled before."""
        if self._loaded is not None:
            await self._loaded.close()
            self._loaded = None

    async def _ask(self, loaded: LoadedBench, request: BenchRequest) -> Answer:
        try:
            async with asyncio.timeout(request.timeout_s):
                return await loaded.ask(request.argv)
        except TimeoutError:
            await self._discard()
            raise BenchFailed(timed_out(request, self._log_path)) from None
        except BaseException:
            await self._discard()
            raise

    async def _discard(self) -> None:
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.kill()


def _outcome(answer: Answer, started_at: str, wall_s: float) -> BenchOutcome:
    load_started = datetime.fromtimestamp(answer.load_started, UTC) if answer.load_started is not None else None
    return BenchOutcome(
        result=answer.result,
        wall_s=wall_s,
        started_at=started_at,
        finished_at=utc_now(),
        client_cpu_perc=answer.client_cpu_perc,
        client_lag_p99_ms=answer.client_lag_p99_ms,
        via="process",
        errors=distinct_errors(answer.errors),
        load_started_at=format_utc(load_started) if load_started is not None else None,
    )
