"""A real vLLM: it starts, says what it has, dies with a cause, and leaves nothing behind."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.ports import free_port, is_free
from engine.process import command_line, marked, send_signal
from engine.records import Installation, LaunchFailed, LogFacts, ServerSpec
from engine.server import Server
from engine.stop import end_leftovers

pytestmark = pytest.mark.vllm

EAGER = {"enforce-eager": True, "max-model-len": 1024}
OFFLINE = {"HF_HUB_OFFLINE": "1"}


class Started:
    """A server that became ready, the stages it went through, and its facts."""

    def __init__(self, server: Server, stages: list[str], facts: LogFacts) -> None:
        self.server, self.stages, self.facts = server, stages, facts


def start(installation: Installation, model: Path, folder: Path, flags: dict[str, Any], marker: str) -> Started:
    spec = ServerSpec(str(model), "127.0.0.1", free_port("127.0.0.1", 8700), {**EAGER, **flags}, "small", OFFLINE)
    stages: list[str] = []

    async def run() -> Started:
        server = await Server.start(installation, spec, log_path=folder / f"{marker}.log", marker=marker)
        try:
            facts = await server.wait_ready(240, lambda stage, facts: stages.append(stage))
        except BaseException:
            await server.stop(5)
            raise
        return Started(server, stages, facts)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def smaller(installation: Installation, model_dir: Path, folder: Path) -> Iterator[Started]:
    started = start(installation, model_dir, folder, {"gpu-memory-utilization": 0.10}, f"smaller-{os.getpid()}")
    yield started
    asyncio.run(started.server.stop(10))


@pytest.fixture(scope="module")
def larger(installation: Installation, model_dir: Path, folder: Path) -> Iterator[Started]:
    started = start(installation, model_dir, folder, {"gpu-memory-utilization": 0.15}, f"larger-{os.getpid()}")
    yield started
    asyncio.run(started.server.stop(10))


def test_a_ready_server_has_told_its_facts(smaller: Started) -> None:
    assert smaller.stages[0] == "spawned"
    assert smaller.stages[-1] == "ready"
    assert {"loading", "weights", "kv_cache"} <= set(smaller.stages)
    assert len(smaller.stages) == len(set(smaller.stages))
    assert smaller.facts.kv_cache_tokens is not None
    assert smaller.facts.kv_cache_tokens > 0
    assert smaller.facts.load_s is not None
    assert smaller.server.log_path.stat().st_mode & 0o777 == 0o600


def test_its_engine_core_is_found_as_descendant_and_by_its_marker(smaller: Started) -> None:
    titles = {process: command_line(process.pid) or "" for process in smaller.server.descendants()}
    engine = next(process for process, title in titles.items() if "EngineCore" in title)
    assert engine in marked(smaller.server.marker)  # setproctitle would have wiped the marker away


def test_kv_tokens_follow_the_utilization(smaller: Started, larger: Started) -> None:
    assert smaller.facts.kv_cache_tokens is not None
    assert larger.facts.kv_cache_tokens is not None
    assert larger.facts.kv_cache_tokens > smaller.facts.kv_cache_tokens * 1.2


def test_what_a_killed_api_server_leaves_is_ended(larger: Started) -> None:
    server = larger.server
    recorded = server.descendants()
    assert send_signal(server.identity, signal.SIGKILL)
    while server.poll() is None:
        time.sleep(0.05)
    assert any("EngineCore" in (command_line(process.pid) or "") for process in marked(server.marker))
    report = asyncio.run(end_leftovers(server.identity, server.pgid, server.marker, recorded, grace_s=10))
    assert report.survivors == ()
    assert len(report.ended) >= 1
    assert marked(server.marker) == []
    assert server.poll() == -signal.SIGKILL
    assert is_free(server.spec.host, server.spec.port)


def test_stop_leaves_no_process_and_frees_the_port(smaller: Started) -> None:
    server = smaller.server
    report = asyncio.run(server.stop(20))
    assert report.exit_code is not None
    assert report.port_free
    assert len(report.ended) >= 2
    assert marked(server.marker) == []
    assert is_free(server.spec.host, server.spec.port)


def test_a_server_that_dies_while_loading_says_why(installation: Installation, model_dir: Path, folder: Path) -> None:
    with pytest.raises(LaunchFailed, match="999999") as failure:
        start(installation, model_dir, folder, {"max-model-len": 999999}, f"dying-{os.getpid()}")
    assert failure.value.failure_class == "model_len_invalid"
    assert failure.value.exit_code not in (0, None)
    assert "\n" not in str(failure.value)
