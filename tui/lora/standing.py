"""Where a training stands, in a word for its line and in a sentence for its details. Pure."""

from typing import Literal

from store.records import TrainingRecord
from tui.format import number
from tui.lora.progress import Doing, Progress

Held = Literal["kept", "alone", "left"]
"""By whom one that has not ended is held: by a living keeper; by none, and its trainer computes on; by nobody."""

GOING_ON = ("waiting", "running", "paused")
BEGUN = ("running", "paused")
_GLYPHS = {"waiting": "◌", "running": "▶", "paused": "‖", "done": "✔", "stopped": "○", "failed": "✗"}
_DOING = {"loading": "loading", "evaluation": "evaluating", "checkpoint": "saving", "adapter": "saving"}


def training_state(training: TrainingRecord, held: Held, progress: Progress) -> str:
    """As glyph and word, of at most 14 cells. One that nobody keeps says so, and whether its trainer computes on."""
    if training.state in BEGUN and held != "kept":
        return "! computes on" if held == "alone" else "! interrupted"
    if training.state == "running" and progress.doing is not None:
        return f"▶ {_DOING[progress.doing.what]}"
    return f"{_GLYPHS.get(training.state, '·')} {training.state}"


def computes(training: TrainingRecord, held: Held) -> bool:
    """Whether its trainer is at work, kept or not."""
    return training.state == "running" and held != "left"


def doing_text(doing: Doing) -> str:
    """`evaluates 12 of 160`, conversations; a step that takes long is none of these."""
    at = "" if doing.step is None else f" of step {number(doing.step)}"
    if doing.what == "evaluation":
        of = "" if doing.of is None else f" {number(doing.done or 0)} of {number(doing.of)}"
        return f"evaluates{of}"
    return {"loading": "loads the model", "checkpoint": f"writes the checkpoint{at}"}.get(
        doing.what, "writes the adapter"
    )


def unkept_text(training: TrainingRecord, held: Held, progress: Progress) -> str:
    """What to do about one that nobody keeps; "" where that is not so."""
    if training.state not in BEGUN or held == "kept":
        return ""
    if held == "alone":
        return "nobody keeps it, and its trainer computes on: R follows it again"
    if progress.end == "done":
        return "nobody keeps it, and its trainer is done: R registers the adapter"
    return "nobody keeps it, and its trainer has ended: R goes on from the newest checkpoint"
