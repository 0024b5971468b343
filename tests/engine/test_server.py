"""Server against the stand-in for `vllm serve`. What only vLLM can show is in test_server_vllm.py."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from engine.processes.ports import is_free
from engine.processes.process import marked, send_signal
from engine.records import EngineError, LaunchFailed, PortTaken
from engine.server import Server
from tests.engine.server_stand_in import stand_in, stand_in_spec

Start = Callable[..., Awaitable[Server]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    installation = stand_in(tmp_path)
    started: list[Server] = []

    async def run(mode: str = "serves", port: int | None = None, model: str | None = None) -> Server:
        spec = stand_in_spec(tmp_path, mode, port, model)
        marker = f"stand-in-{os.getpid()}-{len(started)}"
        started.append(await Server.start(installation, spec, log_path=tmp_path / "logs" / "s.log", marker=marker))
        return started[-1]

    yield run
    for server in started:
        await server.stop(0.1)


async def test_it_becomes_ready_through_its_stages(start: Start, tmp_path: Path) -> None:
    server = await start()
    stages: list[str] = []
    facts = await server.wait_ready(20, lambda stage, facts: stages.append(stage))
    assert stages == ["spawned", "loading", "weights", "kv_cache", "listening", "ready"]
    assert (facts.weights_gib, facts.kv_cache_tokens) == (0.25, 18176)
    assert server.log_path.stat().st_mode & 0o777 == 0o600
    first, *rest = server.log_path.read_text().splitlines()
    assert first.startswith("# ")
    assert "--served-model-name m" in first
    assert any(f'"cwd": "{tmp_path / "logs"}"' in line and '"stdin": ""' in line for line in rest)


async def test_stop_ends_a_child_that_ignores_term_and_frees_the_port(start: Start) -> None:
    server = await start()
    await server.wait_ready(20)
    (child,) = server.descendants()
    report = await server.stop(0.3)
    assert report.exit_code == -signal.SIGTERM
    assert server.identity.pid in report.terminated
    assert report.killed == (child.pid,)
    assert report.survivors == ()
    assert report.port_free is True
    assert marked(server.marker) == []
    assert is_free("127.0.0.1", server.spec.port)
    assert await server.stop() is report


async def test_stop_finds_a_child_that_left_the_session_after_its_parent_was_killed(start: Start) -> None:
    server = await start("stray")
    await server.wait_ready(20)
    send_signal(server.identity, signal.SIGKILL)
    report = await server.stop(0.2)
    assert report.exit_code == -signal.SIGKILL
    assert len(report.killed) == 1
    assert marked(server.marker) == []


async def test_a_server_that_dies_gives_its_cause_and_status(start: Start) -> None:
    server = await start("dies")
    with pytest.raises(LaunchFailed, match="999999") as failure:
        await server.wait_ready(20)
    assert (failure.value.failure_class, failure.value.exit_code) == ("model_len_invalid", 1)


async def test_the_log_of_an_earlier_start_explains_nothing_of_this_one(start: Start) -> None:
    dying = await start("dies")
    with pytest.raises(LaunchFailed):
        await dying.wait_ready(20)
    await dying.stop(0.1)
    again = await start("serves", dying.spec.port)
    assert again.log_path == dying.log_path
    assert (await again.wait_ready(20)).kv_cache_tokens == 18176
    assert "999999" not in again.log_text()


async def test_too_slow_is_a_timeout_that_names_the_stage(start: Start) -> None:
    server = await start("hangs")
    with pytest.raises(LaunchFailed, match="last stage: ") as failure:
        await server.wait_ready(0.5)
    assert failure.value.failure_class == "ready_timeout"
    assert server.poll() is None


async def test_health_without_a_token_is_not_ready_and_does_not_outlast_the_timeout(start: Start) -> None:
    server = await start("mute")
    began = time.monotonic()
    with pytest.raises(LaunchFailed, match="last stage: listening") as failure:
        await server.wait_ready(3)  # the stand-in begins to listen within a second or two on a busy machine
    assert failure.value.failure_class == "ready_timeout"
    assert time.monotonic() - began < 6


async def test_another_server_that_answers_on_our_port_is_named_and_not_taken(start: Start) -> None:
    server = await start("hangs")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.0 200 OK\r\n\r\n{"data": [{"id": "m", "owned_by": "vllm"}]}')
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", server.spec.port):
        with pytest.raises(LaunchFailed, match=f"process {os.getpid()}") as failure:
            await server.wait_ready(20)
    assert failure.value.failure_class == "port_in_use"


async def test_a_stop_while_it_loads_ends_the_wait(start: Start) -> None:
    server = await start("hangs")
    waiting = asyncio.create_task(server.wait_ready(20))
    await asyncio.sleep(0.5)
    began = time.monotonic()
    await server.stop(0.2)
    with pytest.raises(LaunchFailed) as failure:
        await waiting
    assert failure.value.failure_class == "interrupted"
    assert time.monotonic() - began < 5


async def test_a_taken_port_and_a_folder_that_is_no_model_are_refused_before_anything_starts(
    start: Start, tmp_path: Path
) -> None:
    server = await start()
    await server.wait_ready(20)
    with pytest.raises(PortTaken, match=str(server.spec.port)):
        await start("serves", server.spec.port)
    with pytest.raises(EngineError, match=r"no config\.json"):
        await start("serves", None, str(tmp_path / "logs"))
    assert len(marked(server.marker)) > 0
