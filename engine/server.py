"""One vLLM server that we start: its process, its log, the wait until it serves, and its end."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from engine.explain import Explanation, explain
from engine.launch.command import copyable, serve_argv, served_name
from engine.launch.environment import server_environ
from engine.launch.flags import known_flags
from engine.launch.model import check_model
from engine.launch.readiness import STAGES, ReadyProbe, api_key, base_url, stages
from engine.logs.log_facts import LogReader
from engine.processes.oom_kills import killed_since, oom_kills
from engine.processes.ports import accepts, holder, require_free
from engine.processes.process import boot_id, descendants, listener_pids, read_stat, tcp_sockets
from engine.records import EngineError, Installation, LaunchFailed, LogFacts, ProcessIdentity, ServerSpec
from engine.stop import ReadGpuUsed, StopReport, end_processes, find_ours, reap_children, wait_released
from engine.text import clean, redact_env
from store.private_files import open_private

_LOOK_EVERY_S = 0.25
_DESCENDANTS_EVERY_S = 1.0
_TAIL_BYTES = 4 * 1024 * 1024

OnStage = Callable[[str, LogFacts], None]


class Server:
    """A `vllm serve` of ours. Made by `start`; whoever starts it must `stop` it, also when it never became ready.

    `identity` and `pgid` (its own process group and session), `marker` (in the environment of all it starts) and
    `descendants()` are what a later program needs to find what is left of it: record them at once.
    """

    def __init__(
        self, spec: ServerSpec, argv: list[str], process: "subprocess.Popen[bytes]", log_path: Path, marker: str
    ) -> None:
        stat = read_stat(process.pid)  # there even if it has ended: it is our child and not reaped yet
        if stat is None:
            raise EngineError(f"process {process.pid} does not show in /proc: llmtune needs it")
        self.spec = spec
        self.argv = argv
        self.log_path = log_path
        self.marker = marker
        self.base_url = base_url(spec)
        self.served_name = served_name(spec)
        self.pgid = process.pid
        self.identity = ProcessIdentity(process.pid, stat.start_ticks, boot_id())
        # What is kept and copied of the environment: without the marker, which would make a copy's processes ours.
        self.env = redact_env(spec.env)
        self.log_begin = 0  # bytes of the log that earlier starts wrote
        self.installation: Installation | None = None
        self.gpu_total_gib: float | None = None  # of the smallest GPU, where somebody could read it
        self.stop_report: StopReport | None = None
        self._oom_kills: dict[str, int] = {}  # as they stood before it started
        self._process = process
        self._stopping = False
        self._seen: dict[ProcessIdentity, None] = {}
        self._reader = LogReader()
        self._read_to = 0
        self._printed = False

    @classmethod
    async def start(
        cls,
        installation: Installation,
        spec: ServerSpec,
        *,
        log_path: Path,
        marker: str,
        environ: Mapping[str, str] | None = None,
    ) -> "Server":
        """Start `vllm serve` in its own session, standard output and error appended to `log_path` (mode 0600).

        `marker` is a token without secrets, new for each server. `environ` is the environment to begin from, ours if
        None. Raises PortTaken, or EngineError for a model, flag or file that cannot be.
        """
        check_model(spec.model)
        argv = serve_argv(installation, spec)
        await asyncio.to_thread(require_free, spec.host, spec.port)
        whole = server_environ(installation, spec, marker, os.environ if environ is None else environ)
        counted = oom_kills()
        descriptor, begin = _open_log(log_path, argv)
        try:
            process = _spawn(argv, whole, descriptor, log_path.parent)
        finally:
            os.close(descriptor)
        try:
            server = cls(spec, argv, process, log_path, marker)
        except EngineError:
            process.kill()
            raise
        server.log_begin = server._read_to = begin
        server.installation = installation
        server._oom_kills = counted
        return server

    def poll(self) -> int | None:
        """The exit code (negative: the signal that ended it), or None while it runs. Reaps it."""
        return self._process.poll()

    def facts(self) -> LogFacts:
        """What its log has told up to now."""
        try:
            with self.log_path.open("rb") as file:
                file.seek(self._read_to)
                while data := file.read(1024 * 1024):
                    self._read_to += len(data)
                    self._printed = True
                    self._reader.feed(data)
        except OSError:
            pass  # a log that somebody deleted tells nothing new
        return self._reader.facts

    def descendants(self) -> list[ProcessIdentity]:
        """All live processes that it started, by pid, itself not among them; those reparented meanwhile included."""
        found = {*descendants(self.identity.pid)} if self.poll() is None else set()
        self._seen.update(dict.fromkeys(found))
        ours = find_ours(self.identity, self.pgid, self.marker, self._seen)
        self._seen.update(dict.fromkeys(process for process in ours if process != self.identity))
        return [process for process in ours if process != self.identity]

    def log_text(self) -> str:
        """The log of this start (its last 4 MiB), undecodable bytes replaced; "" if it is gone."""
        try:
            with self.log_path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self.log_begin, size - _TAIL_BYTES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def explain(self, exit_code: int | None) -> Explanation:
        """Why it ended, from its log and what is known of its vLLM without asking it."""
        vllm = self.installation
        return explain(
            self.log_text(),
            exit_code,
            known_flags=known_flags(vllm, ask=False) if vllm else None,
            version=vllm.version if vllm else None,
            total_gib=self.gpu_total_gib,
            oom_killed=killed_since(self._oom_kills, oom_kills()),
        )

    async def wait_ready(self, timeout_s: float, on_stage: OnStage = lambda stage, facts: None) -> LogFacts:
        """Wait until it serves its model; `on_stage` is called once for each stage that is reached.

        Raises LaunchFailed: it ended (with the cause from its log), another's server has the port, it serves something
        else, or `timeout_s` seconds are over. It is not stopped then: that is the caller's to do.
        """
        announced: set[str] = set()
        deadline = time.monotonic() + timeout_s
        look_again = 0.0
        async with ReadyProbe(self.base_url, self.served_name, api_key(self.spec, os.environ)) as probe:
            while True:
                code = self.poll()  # before the log is read: what it wrote at its end is then among the facts
                facts = self.facts()
                self._announce(facts, announced, on_stage)
                if code is not None:
                    raise self._ended(code)
                if self._listens() and await self._answer(probe, deadline):
                    facts = replace(self.facts(), listening=True)
                    self._announce(facts, announced, on_stage)
                    on_stage("ready", facts)
                    return facts
                if time.monotonic() >= deadline:
                    raise LaunchFailed(
                        f"the server was not ready after {timeout_s:.0f} s (last stage: {_last(announced)}): "
                        f"see {self.log_path}",
                        "ready_timeout",
                    )
                if time.monotonic() >= look_again:
                    self.descendants()
                    look_again = time.monotonic() + _DESCENDANTS_EVERY_S
                await asyncio.sleep(_LOOK_EVERY_S)

    async def stop(self, grace_s: float = 30.0, *, read_gpu_used: ReadGpuUsed | None = None) -> StopReport:
        """End it and all it started, and wait until its port and the GPU memory are free; a second call does nothing.

        TERM to every process of its group, `grace_s` seconds, KILL to those and to recorded or marked descendants.
        `read_gpu_used` gives the GPU memory in use in GiB, or None where it cannot be read.
        """
        if self.stop_report is not None:
            return self.stop_report
        self._stopping = True
        self.descendants()

        def remember(processes: list[ProcessIdentity]) -> None:
            self._seen.update(dict.fromkeys(process for process in processes if process != self.identity))
            reap_children(self._seen)

        report = await end_processes(
            lambda: find_ours(self.identity, self.pgid, self.marker, self._seen), grace_s, self.poll, remember
        )
        port_free, gpu_flat = await wait_released(self.spec.host, self.spec.port, read_gpu_used)
        self.stop_report = replace(report, exit_code=self.poll(), port_free=port_free, gpu_flat=gpu_flat)
        return self.stop_report

    def _announce(self, facts: LogFacts, announced: set[str], on_stage: OnStage) -> None:
        for stage in stages(facts, printed=self._printed):
            if stage not in announced:
                announced.add(stage)
                on_stage(stage, facts)

    def _listens(self) -> bool:
        """Whether a process of ours listens on the port. Raises LaunchFailed if another's answers there."""
        if self._holds_port():
            return True
        if not accepts(self.spec.host, self.spec.port):
            return False
        if self._holds_port():  # it began to listen between the two looks
            return True
        if not tcp_sockets(self.spec.port):
            return self.facts().listening  # a sandbox that hides the table of sockets: its log must do
        who = holder(self.spec.host, self.spec.port)
        raise LaunchFailed(
            f"port {self.spec.port} is answered by {who}, not by the server started here: choose another port",
            "port_in_use",
        )

    def _holds_port(self) -> bool:
        holders = listener_pids(self.spec.port)
        if not holders:
            return False
        return not holders.isdisjoint({self.identity.pid, *(process.pid for process in self.descendants())})

    async def _answer(self, probe: ReadyProbe, deadline: float) -> bool:
        """The probe's answer, or False as soon as the process ends or time is up: a completion may wait for ever for
        an engine that is dead or hangs."""
        asking = asyncio.ensure_future(probe.ready())
        try:
            while not asking.done() and self.poll() is None and time.monotonic() < deadline:
                await asyncio.wait({asking}, timeout=_LOOK_EVERY_S)
            return asking.result() if asking.done() else False
        finally:
            asking.cancel()

    def _ended(self, code: int) -> LaunchFailed:
        if self._stopping:
            return LaunchFailed("the server was stopped before it was ready", "interrupted", code)
        explanation = self.explain(code)
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        told = " ".join(part for part in (explanation.cause, explanation.remedy) if part)
        cause = clean(told or f"see {self.log_path}", 500)
        return LaunchFailed(
            f"the server {how} before it was ready: {cause}",
            explanation.failure_class or "unknown",
            code,
            explanation.numbers,
        )


def _open_log(path: Path, argv: list[str]) -> tuple[int, int]:
    """The log open for appending with the command as its next line, and where what comes after that begins."""
    try:
        descriptor = open_private(path)
    except OSError as error:
        raise EngineError(f"the log {path} cannot be written: {error.strerror}") from None
    try:
        os.write(descriptor, f"# {copyable(argv)}\n".encode())
        return descriptor, os.fstat(descriptor).st_size
    except OSError as error:
        os.close(descriptor)
        raise EngineError(f"the log {path} cannot be written: {error.strerror}") from None


def _spawn(argv: list[str], environ: Mapping[str, str], log: int, folder: Path) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            argv,
            env=environ,
            cwd=folder,  # never the folder we were started in: with `python -m` it would be first on their path
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EngineError(f"{argv[0]} does not start: {reason}") from None


def _last(announced: set[str]) -> str:
    return max(announced, key=STAGES.index, default="none")
