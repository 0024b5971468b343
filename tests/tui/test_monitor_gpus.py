"""The GPUs on the whole Monitor: eight of them, chosen by `g`, and whose the processes on them are."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine import gpu_owners
from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_json import gpu_kept
from engine.processes.process import boot_id, identify
from store.writer import Writer
from tests.engine.fake_nvml import FakeNvml
from tests.tui.conftest import busy_samples, fed, screen_text, server
from tui.app import LlmtuneApp


@pytest.fixture
def engine_pid() -> Iterator[int]:
    """A process that stands for a server's engine."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process.pid
    process.kill()
    process.wait()


def with_gpus(server_id: int, count: int, pid: int) -> list[Any]:
    """The busy server's samples, on as many H200s, with its engine and a process of nobody's on each."""
    gpus = [gpu_kept(gpu) for gpu in GpuReader(FakeNvml(count=count)).read().gpus]
    processes = [{"pid": pid, "name": "VLLM::EngineCore", "used_gib": 130.0}, {"pid": 2**22 + 1, "used_gib": 0.2}]
    raw = {"gpus": [{**gpu, "processes": processes} for gpu in gpus]}
    return [replace(one, raw={**one.raw, **raw}) for one in busy_samples(server_id)]


@pytest.mark.parametrize(("count", "size"), [(1, (80, 24)), (8, (80, 24)), (8, (140, 45))])
async def test_any_number_of_gpus_has_its_place(
    app: LlmtuneApp, writer: Writer, data_dir: Path, count: int, size: tuple[int, int]
) -> None:
    number = writer.insert(server(data_dir))
    writer.insert_samples(with_gpus(number, count, 1))
    async with app.run_test(size=size) as pilot:
        await pilot.press("2")
        await fed(pilot, until=lambda: "budget 128.6" in screen_text(app))
        for chosen in range(min(count, 3)):
            await fed(pilot, until=lambda at=chosen: f" GPU {at}       130.7 GiB" in screen_text(app))  # type: ignore[misc]
            lines = screen_text(app).splitlines()
            at = next(at for at, line in enumerate(lines) if line.startswith(f" GPU {chosen}       130.7"))
            assert lines[at + 1].startswith(" H200             98 %")
            assert any(line.startswith(" power           122 W") for line in lines)
            await pilot.press("g")
        shown = screen_text(app)
        assert ("8 GPUs" in shown) == (count == 8 and size[1] == 24)
        assert all(word in shown for word in ("● ready", "KV cache", "TTFT", "output"))


async def test_our_processes_are_named_and_others_are_not(
    app: LlmtuneApp, writer: Writer, data_dir: Path, monkeypatch: pytest.MonkeyPatch, engine_pid: int
) -> None:
    seen = partial(gpu_owners.OwnerLook, on_gpu=lambda pid: pid == engine_pid)
    monkeypatch.setattr(gpu_owners, "OwnerLook", seen)
    monkeypatch.setattr("tui.screens.monitor.FIND_S", 0.1)
    identity = identify(engine_pid)
    assert identity is not None
    recorded = [[engine_pid, identity.start_ticks]]
    number = writer.insert(server(data_dir, descendants=recorded, boot_id=boot_id(), start_ticks=1))
    writer.insert_samples(with_gpus(number, 1, engine_pid))
    async with app.run_test(size=(140, 45)) as pilot:
        await pilot.press("2")
        named = f"our server {number}, qwen-7b: VLLM::EngineCore (pid {engine_pid})"
        await fed(pilot, until=lambda: named in screen_text(app))
        assert f"pid {2**22 + 1}, not visible from here" in screen_text(app)
