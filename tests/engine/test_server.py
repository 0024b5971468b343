"""Server against a small real process that behaves like `vllm serve` in what matters: it binds at once, listens late,
has a child in its group, and logs the lines of a start. What only vLLM can show is in test_server_vllm.py."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from engine.ports import free_port, is_free
from engine.process import marked, send_signal
from engine.records import EngineError, Installation, LaunchFailed, PortTaken, ServerSpec
from engine.server import Server

STAND_IN = """
import json, os, signal, socket, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

arguments = dict(zip(sys.argv[3::2], sys.argv[4::2]))
mode = os.environ["MODE"]
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=mode == "stray")
print("INFO 11-30 11:00:00 [api_server.py:1] vLLM API server version 0.25.1", flush=True)
print(json.dumps({"argv": sys.argv, "cwd": os.getcwd(), "stdin": sys.stdin.read()}), file=sys.stderr, flush=True)
if mode == "dies":
    print("ValueError: User-specified max_model_len (999999) is greater than the derived max_model_len "
          "(max_position_embeddings=8192.0 or model_max_length=None in model's config.json)")
    sys.exit(1)

class Handler(BaseHTTPRequestHandler):
    def answer(self):
        name = arguments["--served-model-name"]
        body = {"data": [{"id": name}], "choices": [{"text": "!"}]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
    do_GET = answer
    def do_POST(self):
        if mode == "mute":
            time.sleep(60)
        self.answer()
    def log_message(self, *arguments):
        pass

server = HTTPServer((arguments["--host"], int(arguments["--port"])), Handler, bind_and_activate=False)
server.allow_reuse_address = True
if mode == "hangs":
    time.sleep(60)
server.server_bind()
print("INFO 11-30 11:00:01 [model.py:1] Model loading took 0.25 GiB memory and 0.5 seconds", flush=True)
print("INFO 11-30 11:00:02 [kv.py:1] GPU KV cache size: 18,176 tokens", flush=True)
time.sleep(0.4)
server.server_activate()
print("INFO:     Application startup complete.", flush=True)
server.serve_forever()
"""

Start = Callable[..., Awaitable[Server]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    script = tmp_path / "vllm.py"
    script.write_text(STAND_IN)
    installation = Installation(str(script), sys.executable, (sys.executable, str(script)), "/nowhere", "0.25.1")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    started: list[Server] = []

    async def run(mode: str = "serves", port: int | None = None, model: str = str(model)) -> Server:
        spec = ServerSpec(
            model, "127.0.0.1", port or free_port("127.0.0.1", 8600), served_name="m", env={"MODE": mode},
        )  # fmt: skip
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
        await server.wait_ready(3)
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
