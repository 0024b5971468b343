"""What it costs to keep a sample a second beside a measurement: CPU of the keeper and bytes in the store, from a real
page of an H200 under load and eight made-up GPUs. Printed, judged by nobody.

    make bench ARGS="-k recorder"
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.gpus.gpu import GpuReader
from engine.samples.sample_record import to_record
from engine.scrape.metrics import parse_metrics
from engine.scrape.metrics_page import PageReader
from store.database import open_writer
from tests.engine.fake_nvml import FakeNvml
from tests.engine.observed import H200
from tests.store.examples import a_server

pytestmark = pytest.mark.benchmark

SAMPLES = 2000
PAGE = (H200 / "metrics" / "kv-starved-end.txt").read_text()
AT = "2026-11-30T10:{:02}:{:02}.000Z"


def cpu_us(work: Callable[[int], object], rounds: int = 300) -> float:
    """Median microseconds of this thread's own time."""
    took = []
    for at in range(rounds):
        begun = time.thread_time()
        work(at)
        took.append(time.thread_time() - begun)
    return 1e6 * statistics.median(took)


@pytest.mark.parametrize("gpus", [1, 8])
def test_a_sample_a_second(gpus: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages, reader = PageReader(), GpuReader(FakeNvml(count=gpus))
    reading = reader.read()
    server = parse_metrics(PAGE, AT.format(0, 0), 1.0, pages)
    with open_writer(tmp_path / "llmtune.db") as writer:
        server_id = writer.insert(a_server())
        record = to_record(server, reading, server_id)
        size = writer.path.stat().st_size
        with capsys.disabled():
            read = cpu_us(lambda _: parse_metrics(PAGE, AT, 1.0, pages))
            made = cpu_us(lambda _: to_record(server, reading, server_id))
            written = cpu_us(lambda _: writer.insert_samples([record]), SAMPLES)
            print(
                f"\na sample with {gpus} GPUs, CPU µs: page {read:.0f}, to a record {made:.0f}, written {written:.0f}"
            )
            writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            grown = (writer.path.stat().st_size - size) / SAMPLES
            raw = writer._connection.execute("SELECT length(raw) FROM sample LIMIT 1").fetchone()[0]
            print(f"{grown / 1000:.2f} kB a row, of which JSON {raw / 1000:.2f}")
