"""The screen's GPU numbers against `nvidia-smi` at the same moment.

    python -m tests.benchmarks.gpu_against_nvidia_smi [--times 10] [--every 1.0]

A tool for a machine with a GPU, run by hand, best while something runs on it. Each time it reads the GPUs as llmtune
does, asks nvidia-smi, and reads them again, since nvidia-smi takes a tenth of a second: a figure agrees where
nvidia-smi's lies between the two, give or take what both round to. Prints a JSON object a line: one a GPU and field
("ours" before and after, "nvidia_smi", "agrees"; null is "not supported" for both), one a time with the Monitor's own
lines, one with what a reading costs in ms, and last the sums. Where there is no GPU it says why and ends with 1.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from engine.gpus.gpu import GpuReader
from engine.gpus.gpu_fields import THROTTLE_REASONS
from engine.records import GpuReading, GpuSample
from engine.samples.sample_record import to_record
from engine.samples.window import Window
from tui.panels.gpus import gpu_rows
from tui.panels.row import text_of

MIB_PER_GIB = 1024.0
# nvidia-smi's name: (ours, what one of its units is of ours, what both round to in our unit)
FIELDS: dict[str, tuple[str, float, float]] = {
    "memory.total": ("mem_total_gib", 1 / MIB_PER_GIB, 1 / MIB_PER_GIB),
    "memory.used": ("mem_used_gib", 1 / MIB_PER_GIB, 1 / MIB_PER_GIB),
    "memory.reserved": ("mem_reserved_gib", 1 / MIB_PER_GIB, 1 / MIB_PER_GIB),
    "memory.free": ("mem_free_gib", 1 / MIB_PER_GIB, 1 / MIB_PER_GIB),
    "utilization.gpu": ("util_perc", 1.0, 0.5),
    "utilization.memory": ("mem_util_perc", 1.0, 0.5),
    "power.draw": ("power_w", 1.0, 0.01),
    "enforced.power.limit": ("power_limit_w", 1.0, 0.01),
    "clocks.sm": ("sm_clock_mhz", 1.0, 0.5),
    "clocks.mem": ("mem_clock_mhz", 1.0, 0.5),
    "clocks.max.sm": ("sm_clock_max_mhz", 1.0, 0.5),
    "clocks.max.mem": ("mem_clock_max_mhz", 1.0, 0.5),
    "temperature.gpu": ("temp_c", 1.0, 0.5),
    "pcie.link.gen.current": ("pcie_gen", 1.0, 0.0),
    "pcie.link.gen.max": ("pcie_gen_max", 1.0, 0.0),
    "pcie.link.width.current": ("pcie_width", 1.0, 0.0),
    "pcie.link.width.max": ("pcie_width_max", 1.0, 0.0),
    "ecc.errors.uncorrected.volatile.total": ("ecc_errors", 1.0, 0.0),
    "ecc.errors.corrected.volatile.total": ("ecc_corrected", 1.0, 0.0),
}
REASONS = "clocks_event_reasons.active"  # clocks_throttle_reasons.active before driver 535


def ask(query: str, names: Sequence[str]) -> str:
    """What nvidia-smi prints. Raises OSError where it is not there, CalledProcessError where it fails."""
    command = ["nvidia-smi", f"--query-{query}={','.join(names)}", "--format=csv,noheader"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def parse(printed: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Rows of nvidia-smi's CSV by the names that were asked for; values as printed, "[N/A]" and the like too."""
    lines = [line for line in printed.splitlines() if line.strip()]
    return [dict(zip(names, (value.strip() for value in line.split(",")), strict=False)) for line in lines]


def number(value: str | None) -> float | None:
    """`133789 MiB` as 133789; what is not supported is None."""
    try:
        return float((value or "").split()[0])
    except (IndexError, ValueError):
        return None


def compared(gpu: dict[str, str], before: GpuSample, after: GpuSample) -> list[dict[str, Any]]:
    """One object a field that both can tell."""
    found: list[dict[str, Any]] = []
    for name, (field, scale, rounding) in FIELDS.items():
        if name not in gpu:
            continue
        raw = number(gpu[name])
        theirs = None if raw is None else raw * scale
        ours = getattr(before, field), getattr(after, field)
        found.append(
            {
                "gpu": before.index,
                "field": field,
                "ours": ours,
                "nvidia_smi": theirs,
                "agrees": _agree(ours, theirs, rounding),
            }
        )
    if (bits := gpu.get(REASONS, "")).startswith("0x"):
        words = [word for bit, word in THROTTLE_REASONS if int(bits, 16) & bit]
        told = [before.throttle_reasons, after.throttle_reasons]
        agrees = any(list(one or ()) == words for one in told)
        found.append(
            {"gpu": before.index, "field": "throttle_reasons", "ours": told, "nvidia_smi": words, "agrees": agrees}
        )
    return found


def _agree(ours: tuple[float | None, float | None], theirs: float | None, rounding: float) -> bool:
    known = [one for one in ours if one is not None]
    if theirs is None or not known:
        return theirs is None and not known
    return min(known) - rounding - 1e-6 <= theirs <= max(known) + rounding + 1e-6


def screen(reading: GpuReading) -> list[str]:
    """The lines that the Monitor shows of a reading in 80 columns."""
    window = Window(60.0, [to_record(None, reading)])
    return [text_of(row).rstrip() for row in gpu_rows(window, False, 78, 12)]


def costs(times: int = 20) -> dict[str, float]:
    """What a reading takes in ms: the first, which starts NVML, and the median of those after."""
    reader = GpuReader()
    took = []
    for _ in range(times + 1):
        began = time.perf_counter()
        reader.read()
        took.append(1000 * (time.perf_counter() - began))
    reader.close()
    return {"first_ms": took[0], "median_ms": sorted(took[1:])[times // 2], "most_ms": max(took[1:])}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--every", type=float, default=1.0)
    arguments = parser.parse_args()
    names = ["index", "uuid", "name", *FIELDS, REASONS]
    agreed = asked = 0
    for turn in range(arguments.times):
        time.sleep(arguments.every if turn else 0.0)
        reader = GpuReader()  # a new one each time: the fields that are kept for seconds are of now, too
        before = reader.read()
        if not before.gpus:
            print(before.note, file=sys.stderr)
            return 1
        try:
            rows = parse(ask("gpu", names), names)
            applications = parse(ask("compute-apps", apps := ["gpu_uuid", "pid", "used_memory", "process_name"]), apps)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"nvidia-smi does not answer: {error}", file=sys.stderr)
            return 1
        after = reader.read()
        reader.close()
        by_uuid = {gpu.uuid: gpu for gpu in before.gpus}
        later = {gpu.uuid: gpu for gpu in after.gpus}
        for row in rows:
            for one in compared(row, by_uuid[row["uuid"]], later[row["uuid"]]):
                agreed, asked = agreed + one["agrees"], asked + 1
                print(json.dumps({"turn": turn, **one}))
        ours = {gpu.uuid: [asdict(process) for process in gpu.processes] for gpu in after.gpus}
        print(json.dumps({"turn": turn, "processes": ours, "nvidia_smi": applications}))
        print(json.dumps({"turn": turn, "at": after.at, "screen": screen(after)}))
    print(json.dumps({"cost": costs()}))
    print(json.dumps({"fields": asked, "agree": agreed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
