"""Samples as CSV: what was recorded of a server in a stretch of time, one line a sample, counters as they stood."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from store.database import open_reader
from store.location import database_file
from store.private_files import make_private_folder, write_private
from store.records import SampleRecord

COLUMNS = (
    "at", "run_id", "running", "waiting", "kv_perc", "preemptions", "prompt_tokens", "generation_tokens",
    "prefix_queries", "prefix_hits", "gpu_mem_used_gib", "gpu_util_perc", "gpu_power_w", "gpu_energy_j",
)  # fmt: skip


def export_samples(data_dir: Path, name: str, server_id: int, since: str, until: str) -> tuple[Path, int]:
    """Write `<name>-samples.csv` to the exports folder in place of an earlier one; its path and how many samples.

    Those after `since` and not after `until`; "" is no bound. Raises StoreError, OSError.
    """
    with open_reader(database_file(data_dir)) as reader:
        samples = reader.samples(server_id=server_id, since=since or None, until=until or None)
    target = data_dir / "exports" / f"{name}-samples.csv"
    make_private_folder(target.parent)
    write_private(target, to_csv(samples))
    return target, len(samples)


def to_csv(samples: Iterable[SampleRecord]) -> str:
    """A header, then a line a sample; what could not be read is empty."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    out.writerows([getattr(sample, column) for column in COLUMNS] for sample in samples)
    return text.getvalue()
