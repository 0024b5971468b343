"""A data directory as a morning's work leaves it: figures of the recorded H200 and CPU servers."""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import tui.collector
from store.clock import format_utc
from store.database import open_writer
from store.location import database_file
from store.records import EventRecord, SampleRecord, ServerRecord
from store.writer import Writer
from tui.app import LlmtuneApp

# Each app leaves cycles of some thousand objects; collecting them as often as Python does costs a quarter of the time.
gc.set_threshold(100_000, 50, 50)
# Nor is each opened screen to be followed by a look through all that the tests themselves hold.
tui.collector.OPENED_S = 60.0

NOW = datetime(2026, 11, 30, 14, 2, 11, tzinfo=UTC)

H200_FACTS: dict[str, Any] = {
    "weights_gib": 14.29,
    "load_s": 1.8,
    "compile_s": 24.61,
    "kv_cache_gib": 105.4,
    "kv_cache_tokens": 1973808,
    "max_concurrency": 481.88,
    "max_concurrency_at_tokens": 4096,
    "graph_capture_s": 6.0,
    "graph_gib": 0.86,
    "init_s": 41.2,
    "attention_backend": "FLASH_ATTN",
    "engine_config": {"enforce_eager": "False"},
}

LOG = """\
(APIServer pid=572) INFO 11-30 08:37:38 [model.py:619] Resolved architecture: Qwen2ForCausalLM
(EngineCore pid=693) INFO 11-30 08:37:59 [model_runner.py:302] Model loading took 14.29 GiB and 1.777227 seconds
(EngineCore pid=693) INFO 11-30 08:38:24 [monitor.py:53] torch.compile took 24.61 s in total
(APIServer pid=572) INFO 11-30 08:38:44 [launcher.py:46] Application startup complete.
"""


def ago(seconds: float) -> str:
    """The stored form of a moment before NOW."""
    return format_utc(NOW - timedelta(seconds=seconds))


def server(folder: Path, **changes: Any) -> ServerRecord:
    """A ready H200 server; `changes` replace its fields."""
    fields: dict[str, Any] = {
        "name": "qwen-7b",
        "state": "ready",
        "model": "/models/qwen2.5-7b",
        "served_name": "qwen2.5-7b",
        "host": "127.0.0.1",
        "port": 8000,
        "command": ["/venv/bin/vllm", "serve", "/models/qwen2.5-7b", "--port", "8000", "--max-num-seqs", "256"],
        "env": {"CUDA_VISIBLE_DEVICES": "0"},
        "log_path": str(folder / "qwen-7b.log"),
        "marker": "0" * 32,
        "vllm_version": "0.25.1",
        "pid": 572,
        "started_at": ago(4000),
        "ready_at": ago(3915),
        "facts": H200_FACTS,
        "raw": {"spec": {"flags": {"max-num-seqs": 256}}},
    }
    return ServerRecord(**{**fields, **changes})


def busy_samples(server_id: int, seconds: int = 300) -> list[SampleRecord]:
    """A server that fills up, as the recorded starved one did: 200 users, the cache full, requests thrown out."""
    return [
        SampleRecord(
            at=ago(seconds - 1 - tick),
            server_id=server_id,
            running=min(184.0, 20.0 + tick),
            waiting=max(0.0, tick - 280.0),
            kv_perc=min(71.4, tick * 0.4),
            preemptions=float(max(0, tick - 283)),
            prompt_tokens=9101.0 * tick,
            generation_tokens=4512.0 * tick,
            prefix_queries=9101.0 * tick,
            prefix_hits=2921.4 * tick,
            gpu_mem_used_gib=130.7,
            gpu_util_perc=min(98.0, 50.0 + tick),
            gpu_power_w=612.0,
            raw={
                "requests_finished": {"stop": 30.2 * tick, "length": 5.0 * tick},
                "waiting_by_reason": {"capacity": max(0.0, tick - 280.0), "deferred": 0.0},
                "gpu_memory_utilization": 0.92,
                "gpus": [
                    {
                        "index": 0,
                        "name": "NVIDIA H200",
                        "mem_used_gib": 130.7,
                        "mem_total_gib": 140.4,
                        "util_perc": min(98.0, 50.0 + tick),
                        "power_w": 612.0,
                        "power_limit_w": 700.0,
                        "temp_c": 41.0,
                        "sm_clock_mhz": 1980.0,
                        "throttle_reasons": [],
                    }
                ],
            },
        )
        for tick in range(seconds)
    ]


async def idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Until the UI thread had nothing to do for 3 ms. Textual's own wait looks at the whole process, our poller's
    thread too, in steps of 20 ms and twice a key: seconds for a test that types a line."""
    end = time.monotonic() + max_sleep
    while time.monotonic() < end:
        used = time.thread_time()
        await asyncio.sleep(0.003)
        if time.thread_time() - used < 0.0005:
            return


@pytest.fixture(autouse=True)
def _idle_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", idle)


@pytest.fixture(autouse=True)
def _found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the servers of the machine it runs on."""
    monkeypatch.setattr("tui.monitor.finding.finder", lambda: tuple)


def _made_here(path: Path) -> None:
    open_writer(path).close()


@pytest.fixture(autouse=True)
def _no_process_for_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app on an empty place starts a Python of its own to make the database; `tests/store/test_make.py` is of it."""
    monkeypatch.setattr("store.make.make_database", _made_here)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def writer(data_dir: Path) -> Iterator[Writer]:
    """The writer of an empty database."""
    with open_writer(database_file(data_dir)) as opened:
        yield opened


@pytest.fixture
def filled(writer: Writer, data_dir: Path) -> Path:
    """Four servers: a busy one, one that is loading, one that failed, one of a session that ended."""
    (data_dir / "qwen-7b.log").write_text(LOG)
    failed = "the KV cache is too small for one request of 32,768 tokens: set max-model-len to 20,480 or less"
    busy = writer.insert(server(data_dir))
    writer.insert_samples(busy_samples(busy))
    for age, level, text in ((3915, "info", "ready after 85 s"), (17, "warning", "preemptions began")):
        writer.insert(EventRecord(at=ago(age), level=level, text=text, server_id=busy))  # type: ignore[arg-type]
    writer.insert(
        server(
            data_dir,
            name="smollm2",
            state="starting",
            model="/models/smollm2-135m",
            port=8001,
            env={},
            vllm_version="0.32.0+cpu",
            log_path=str(data_dir / "smollm2.log"),
            started_at=ago(12),
            ready_at=None,
            facts={"weights_gib": 0.25, "load_s": 0.4, "engine_config": {"enforce_eager": "True"}},
        )
    )
    writer.insert(
        server(
            data_dir,
            name="qwen-long",
            state="failed",
            port=8002,
            ready_at=None,
            stopped_at=ago(600),
            exit_code=1,
            failure_class="kv_cache_too_small",
            failure=failed,
            facts={"weights_gib": 14.29, "load_s": 1.8, "compile_s": 24.61},
        )
    )
    return data_dir


@pytest.fixture
def app(data_dir: Path) -> LlmtuneApp:
    """The screens on that data directory, at a fixed time."""
    return LlmtuneApp(data_dir, None, now=lambda: NOW)


async def fed(pilot: Pilot[Any], until: Callable[[], bool] | None = None) -> None:
    """Have the present screen fed until it drew what is true now, or until `until` holds; at most twenty seconds."""
    app = pilot.app
    assert isinstance(app, LlmtuneApp)
    wanted = app.readings + 2  # one reading may have been under way
    asked = -1
    for _ in range(2000):
        if until() if until is not None else app.readings >= wanted:
            break
        if asked != app.readings:
            asked = app.readings
            app.ask()
        await asyncio.sleep(0.01)
    else:
        raise AssertionError("the screen did not show what was waited for within twenty seconds")
    for _ in range(4):  # blocks that were given their place just now are drawn after that, some refreshes later
        await pilot.pause()


def screen_text(app: LlmtuneApp) -> str:
    """What stands on the screen, line by line, without colours."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)
