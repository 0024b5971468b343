"""What one look costs: the page, the whole of it over HTTP to a row, and the search for servers. Printed, not judged;
the goal is that a look takes a small part of what the whole screen may cost a second (about 22 ms of CPU)."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.discovery import found_servers
from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_look import GpuLook
from engine.samples.sample_record import to_record
from engine.samples.sampler import Sampler
from engine.samples.window import Window
from engine.scrape.metrics import parse_metrics
from engine.scrape.metrics_page import PageReader
from tests.engine.observed import METRICS, file_id

pytestmark = pytest.mark.benchmark

ROUNDS = 30
LONGEST = max(METRICS, key=lambda path: path.stat().st_size)


def cpu_ms(ask: Callable[[], object]) -> float:
    """The median of several calls, ms of CPU."""
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        ask()
        times.append(time.process_time() - begun)
    return 1000 * statistics.median(times)


def test_pages(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print()
        for path in METRICS:
            text = path.read_text()
            kept = PageReader()
            library = cpu_ms(lambda text=text: list(text_string_to_metric_families(text)))  # type: ignore[misc]
            first = cpu_ms(lambda text=text: parse_metrics(text, "", 0.0))  # type: ignore[misc]
            later = cpu_ms(lambda text=text, kept=kept: parse_metrics(text, "", 0.0, kept))  # type: ignore[misc]
            print(
                f"{file_id(path)}: {later:.2f} ms a look, {later / library:.2f} of prometheus_client on all of it; "
                f"{first:.2f} ms the first, {first / library:.2f}"
            )
            assert later < library  # whatever else runs here


def test_a_whole_look(capsys: pytest.CaptureFixture[str]) -> None:
    """A look as the screen takes it: HTTP, page, GPU (none), row, window; of this process alone."""
    program = [sys.executable, "-m", "tests.lying_exporter", "0", str(LONGEST)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as exporter:
        try:
            assert exporter.stdout is not None
            url = exporter.stdout.readline().strip()
            spent = asyncio.run(looks(url))
        finally:
            exporter.kill()
    with capsys.disabled():
        print(f"\na whole look: {spent:.2f} ms of CPU, {LONGEST.stat().st_size / 1000:.0f} kB over loopback")


async def looks(url: str) -> float:
    reader = GpuReader()
    window = Window(60)
    async with Sampler(url, GpuLook(reader, shared=True)) as sampler:
        for _ in range(5):
            await sampler.once()
        begun = time.process_time()
        for _ in range(200):
            server, gpu, error = await sampler.once()
            assert error is None
            window.add(to_record(server, gpu, error=error))
        spent = time.process_time() - begun
    reader.close()
    return 1000 * spent / 200


def test_servers_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for pid in range(1000, 1500):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "cmdline").write_bytes(b"/usr/bin/python3\0-m\0some.module\0" + b"--flag\0value\0" * 10)
    (tmp_path / "net").mkdir()
    processes = sum(name.isdigit() for name in os.listdir("/proc"))
    with capsys.disabled():
        print(f"\nservers among 500 processes that are made up: {cpu_ms(lambda: found_servers(tmp_path)):.1f} ms")
        print(f"among the {processes} of this machine: {cpu_ms(found_servers):.1f} ms")
