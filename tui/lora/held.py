"""Who holds a training or an evaluation: asked of its keeper's lock and the process table, so not on the UI thread."""

from pathlib import Path

from engine.keeper.client import is_running
from lora.process.process_life import Life
from lora.process.work import Work, WorkKind
from store.records import TrainingRecord
from tui.lora.standing import Held


def kind_of(work: Work) -> WorkKind:
    """As keepers are told apart."""
    return "training" if isinstance(work, TrainingRecord) else "evaluation"


def held_by(data_dir: Path, work: Work) -> Held:
    """Whether a living keeper holds it; without one, whether the process that it left computes on."""
    if work.id is not None and is_running(data_dir, kind_of(work), work.id):
        return "kept"
    return "left" if Life.left(work) is None else "alone"
