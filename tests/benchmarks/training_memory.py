"""The memory that a training is said to need, against what it takes: one training for each way to set it up.

    python -m tests.benchmarks.training_memory DATASET --model MODEL [--vllm PATH] [--steps 6] [--at-once 1] \\
        [--data-dir DIR] [WAY …]

A tool that is run by hand, on a machine with a GPU above all. DATASET is a prepared one whose records come close to
--max-length. Prints one JSON object a line: the settings, what `lora.sizes.memory` says they need, torch's own peak of
reserved memory and the most that NVML saw the trainer's process hold (None where it is not told), all in GiB, and the
median seconds of a step, which mean something only with --at-once 1.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.gpus.gpu import GpuReader
from lora.process.process_life import PROGRESS
from lora.records import TrainingSettings
from lora.sizes.base_model import read_base
from lora.sizes.memory import training_memory
from lora.sizes.parameter_count import adapter_size
from store.database import open_reader
from store.location import database_file
from store.records import TrainingRecord

OVER = ("done", "failed", "stopped")
LOOK_EVERY_S = 0.25
WAYS: dict[str, tuple[str, ...]] = {
    "qv": ("--targets", "q_proj,v_proj", "--alpha", "16", "--dropout", "0"),
    "default": (),
    "batch4": ("--batch", "4", "--accumulation", "2"),
    "kept": ("--no-gradient-checkpointing",),
    "kept-qv-batch2": (
        "--no-gradient-checkpointing", "--targets", "q_proj,v_proj", "--batch", "2", "--accumulation", "4",
    ),
    "whole": ("--quantization", "none"),
    "float16": ("--dtype", "float16"),
    "r64-batch2": ("--r", "64", "--batch", "2", "--accumulation", "4"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """Where and of what; `options` are given to every training."""

    data_dir: Path
    dataset: str
    model: Path
    options: tuple[str, ...]


def train(case: Case, way: str, gpus: GpuReader) -> dict[str, Any]:
    """One training, followed to its end."""
    command = [
        sys.executable, "-m", "tui.cli", "lora", "train", "--data-dir", str(case.data_dir), case.dataset,
        "--model", str(case.model), "--name", f"memory-{way}", "--no-wait", "--json", "--anyway",
        *case.options, *WAYS[way],
    ]  # fmt: skip
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        return {"way": way, "state": "refused", "message": told.stderr.strip()}
    number = int(json.loads(told.stdout)["training"])
    held: float | None = None
    while (training := _row(case, number)).state not in OVER:
        for gpu in gpus.read().gpus:
            for process in gpu.processes:
                if process.pid == training.pid and process.used_gib is not None:
                    held = max(held or 0.0, process.used_gib)
        time.sleep(LOOK_EVERY_S)
    return {"way": way, **_said(case, training), "nvml_gib": held, **_took(case, training)}


def _row(case: Case, number: int) -> TrainingRecord:
    with open_reader(database_file(case.data_dir)) as reader:
        return reader.training(number)


def _said(case: Case, training: TrainingRecord) -> dict[str, Any]:
    settings = dict(training.settings)
    if isinstance(settings["targets"], list):
        settings["targets"] = tuple(settings["targets"])
    asked = TrainingSettings(**{key: value for key, value in settings.items() if key in TrainingSettings.__slots__})
    base = read_base(case.model)
    needed = training_memory(base, asked, gpu=True)
    names = ("targets", "r", "batch", "max_length", "gradient_checkpointing", "quantization", "dtype", "dropout")
    return {
        "settings": {name: settings[name] for name in names},
        "trainable": adapter_size(base, asked.r, asked.targets).trainable,
        "said_gib": round(needed.total_gib, 2),
        "said_parts_gib": {name: round(gib, 2) for name, gib in needed.parts},
    }


def _took(case: Case, training: TrainingRecord) -> dict[str, Any]:
    lines = [json.loads(line) for line in (case.data_dir / training.path / PROGRESS).read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    peaks = [line["gpu_peak_gib"] for line in lines if line.get("gpu_peak_gib") is not None]
    gaps = [after["seconds"] - before["seconds"] for before, after in itertools.pairwise(steps)]
    return {
        "torch_peak_gib": round(max(peaks), 2) if peaks else None,
        "step_s": round(statistics.median(gaps), 3) if gaps else None,
        "tokens_per_s": steps[-1].get("tokens_per_s") if steps else None,
        "state": training.state,
        "message": training.message,
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Hold the memory estimate against real trainings.")
    parser.add_argument("dataset")
    parser.add_argument("ways", nargs="*", choices=[*WAYS, []], metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--vllm")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=Path("training-memory"))
    args = parser.parse_args(argv)
    options = ("--steps", str(args.steps), "--eval-every", str(args.steps), "--save-every", str(args.steps))
    case = Case(
        args.data_dir, args.dataset, args.model.resolve(), options + (("--vllm", args.vllm) if args.vllm else ())
    )
    gpus = GpuReader()
    with ThreadPoolExecutor(args.at_once) as pool:
        for told in pool.map(lambda way: train(case, way, gpus), args.ways or WAYS):
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
