"""Who holds a training: asked of its keeper's lock and of the process table, so not on the UI thread."""

from pathlib import Path

from engine.keeper.client import is_running
from lora.process_life import Life
from store.records import TrainingRecord
from tui.lora.standing import Held


def held_by(data_dir: Path, training: TrainingRecord) -> Held:
    """Whether a living keeper holds it; without one, whether the trainer that it left computes on."""
    if training.id is not None and is_running(data_dir, "training", training.id):
        return "kept"
    return "left" if Life.left(training) is None else "alone"
