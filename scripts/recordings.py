"""Data directories as they were recorded, for the pictures of the README: an H200's sweep, and a server that starves.

The sweep (`sweep.db.xz`) is the database of docs/results/h200, with other paths. Of the starved server five pages of
/metrics lie three seconds apart; what came between and after is counted evenly. Its GPU is the same one: the memory as
nvidia-smi had it of that server (`orphans.txt`), the rest as in the load of the sweep.
"""

import lzma
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engine.logs.log_facts import read_facts
from engine.records import GpuReading
from engine.samples.sample_record import to_record
from engine.scrape.metrics import parse_metrics
from engine.supervise import facts_json
from store.clock import format_utc
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import EventRecord, ServerRecord

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "fixtures" / "h200-vllm-0.25.1"
sys.path.insert(0, str(ROOT))

from tests.benchmarks.moving_exporter import MovingPage  # noqa: E402

BEGAN = datetime(2026, 11, 30, 9, 0, 3, tzinfo=UTC)
"""When the load of the starved server began."""
LOAD_S = 58
STARVED_AT = BEGAN + timedelta(seconds=LOAD_S)
"""The moment of it that is shown."""
GPU_RUN = 33  # of the sweep: 64 clients
FLAGS: dict[str, Any] = {"max-model-len": 4096, "enforce-eager": True, "gpu-memory-utilization": 0.125}


def unpack_sweep(data_dir: Path) -> None:
    """The sweep's database, brought up to date."""
    data_dir.mkdir(parents=True, exist_ok=True)
    database_file(data_dir).write_bytes(lzma.decompress((RECORDED / "sweep.db.xz").read_bytes()))
    open_writer(database_file(data_dir)).close()


def make_starved(data_dir: Path, gpus: Sequence[dict[str, Any]]) -> int:
    """A data directory with the starved server alone; its id. `gpus` has a reading of the GPU a second."""
    log = RECORDED / "logs" / "util-02.log"
    words = [word for name, value in FLAGS.items() for word in (f"--{name}", *([] if value is True else [str(value)]))]
    data_dir.mkdir(parents=True, exist_ok=True)
    kept_log = data_dir / "logs" / "server-1.log"
    kept_log.parent.mkdir()
    kept_log.write_bytes(log.read_bytes())
    with open_writer(database_file(data_dir)) as writer:
        server_id = writer.insert(
            ServerRecord(
                name="qwen",
                state="ready",
                model="/models/qwen2.5-7b",
                host="127.0.0.1",
                port=8000,
                command=["vllm", "serve", "/models/qwen2.5-7b", *words],
                env={},
                log_path=str(kept_log),
                marker="0" * 32,
                served_name="qwen2.5-7b",
                vllm_version="0.25.1",
                pid=2929,
                started_at=_at(-49),
                ready_at=_at(-3),
                facts={**facts_json(read_facts(log.read_text())), "stage": "ready"},
                raw={"spec": {"flags": FLAGS}},
            )
        )
        page = MovingPage()
        for second in range(LOAD_S + 1):
            server = parse_metrics(page.at(second), _at(second), float(second))
            sample = to_record(server, GpuReading(_at(second), float(second)), server_id)
            sample.raw["gpus"] = [gpus[second % len(gpus)]]
            writer.insert_samples([sample])
        writer.insert(EventRecord(at=_at(-3), level="info", text="ready after 46 s", server_id=server_id))
    return server_id


def recorded_gpus(sweep: Path) -> list[dict[str, Any]]:
    """The GPU's readings during a run of the sweep, with the memory that the starved server held."""
    process = re.search(r"^(\d+), (\d+) MiB, (.*)$", (RECORDED / "logs" / "orphans.txt").read_text(), re.MULTILINE)
    assert process is not None
    used = int(process[2]) / 1024
    processes = [{"pid": int(process[1]), "used_gib": used, "name": process[3]}]
    with open_reader(database_file(sweep)) as reader:
        gpus = [sample.raw["gpus"][0] for sample in reader.samples(run_id=GPU_RUN) if sample.running]
    return [
        {**gpu, "mem_used_gib": used, "mem_free_gib": gpu["mem_total_gib"] - used, "processes": processes}
        for gpu in gpus
    ]


def _at(second: float) -> str:
    return format_utc(BEGAN + timedelta(seconds=second))
