"""The benchmark process: vLLM's benchmark loaded once in the Python of the server."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

from engine.bench.group import Child, start_child
from engine.bench.protocol import Answer, read_answer, read_ready, request_line
from engine.processes.process import identify
from engine.records import BenchFailed, Installation, ProcessIdentity

SCRIPT = Path(__file__).resolve().parent / "standalone" / "llmtune_bench_process.py"

_CLOSE_S = 2.0


class NoEntryPoint(BenchFailed):
    """The benchmark of this vLLM cannot be called in a process; its command may still work."""


class LoadedBench:
    """One such process, ready. After any error it must be killed: what it would answer next is not known."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._asked = 0
        self.identity: ProcessIdentity | None = identify(child.pid)

    @classmethod
    async def start(
        cls, installation: Installation, environ: Mapping[str, str], log_path: Path, timeout_s: float
    ) -> "LoadedBench":
        """Start it and wait until vLLM is imported (10 s on two cores, half a minute on a pod, more on a slow disk).

        Raises NoEntryPoint, or BenchFailed if it ended or was not ready within `timeout_s`.
        """
        child = await start_child([installation.python, str(SCRIPT)], environ, log_path, pipes=True)
        bench = cls(child)
        try:
            async with asyncio.timeout(timeout_s):
                line = await bench._line("before it was ready")
            ready = read_ready(line)
        except TimeoutError:
            await child.kill()
            message = f"vLLM's benchmark was not loaded within {timeout_s:.0f} s; its log is {log_path}"
            raise BenchFailed(message) from None
        except BaseException:
            await child.kill()
            raise
        if ready.why is not None:
            await bench.close()
            raise NoEntryPoint(f"vLLM {installation.version}: {ready.why}")
        return bench

    @property
    def running(self) -> bool:
        return self._child.running

    async def ask(self, argv: tuple[str, ...]) -> Answer:
        """One run. Raises BenchFailed if the process dies meanwhile; a failure of vLLM stands in the answer."""
        self._asked += 1
        pipe = self._pipe()
        with contextlib.suppress(ConnectionError):  # it has died: the missing answer tells, and how
            pipe.write(request_line(self._asked, argv))
            await pipe.drain()
        answer = read_answer(await self._line("during a run"))
        if answer.id != self._asked:
            raise BenchFailed(f"the benchmark process answered run {answer.id} when asked for run {self._asked}")
        return answer

    async def kill(self) -> None:
        await self._child.kill()

    async def close(self) -> None:
        """End it by closing its input, or else by force."""
        self._pipe().close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._child.process.wait()
        except TimeoutError:
            await self._child.kill()

    async def _line(self, when: str) -> bytes:
        answers = self._child.process.stdout
        assert answers is not None  # it was started with pipes
        line = await answers.readline()
        if not line.endswith(b"\n"):
            raise BenchFailed(f"the benchmark process ended {when}: {await self._child.ending()}")
        return line

    def _pipe(self) -> asyncio.StreamWriter:
        pipe = self._child.process.stdin
        assert pipe is not None  # it was started with pipes
        return pipe
