"""What a trainer is told, and where it leaves what it makes."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from lora.process.process_life import PROGRESS
from lora.records import TrainingSettings
from store.records import TrainingRecord

SCRIPT = "llmtune_trainer.py"
LOG, ADAPTER = "trainer.log", "adapter"

# A checkpoint is written at the end of the step in hand: minutes for a large one on a slow disk.
STOP_WITHIN_S = 600.0


def job_of(training: TrainingRecord, folder: Path, data: Path, settings: TrainingSettings) -> dict[str, Any]:
    """`data` is the folder of the data set."""
    return {
        "model": settings.base_model,
        "train": str(data / "train.jsonl"),
        "validation": str(data / "validation.jsonl"),
        "output": str(folder),
        "progress": str(folder / PROGRESS),
        "seconds_before": training.seconds or 0.0,
        "settings": asdict(settings),
    }
