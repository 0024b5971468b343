"""Checkpoints that are whole: for llmtune_trainer.py, in the training Python (3.9 or newer).

A process may be killed while it writes one. What is whole is on the disk before its mark is, and the mark comes last.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

MARK = "llmtune_whole.json"
_NAME = re.compile(r"checkpoint-(\d+)")  # transformers.trainer_utils.PREFIX_CHECKPOINT_DIR


def mark_whole(folder: Path, facts: dict[str, Any]) -> None:
    """Say that all of a checkpoint is there, with what a trainer that goes on from it must know. Raises OSError."""
    for entry in folder.iterdir():
        if entry.is_file():
            _to_disk(entry)
    coming = folder / f"{MARK}.coming"
    coming.write_text(json.dumps(facts), encoding="utf-8")
    _to_disk(coming)
    os.replace(coming, folder / MARK)
    _to_disk(folder)


def newest_whole(place: Path) -> Path | None:
    """The whole checkpoint of most steps in `place`, None without one. What was begun and not ended is removed: it
    would else count among those that are kept."""
    found: dict[int, Path] = {}
    for entry in sorted(place.glob("checkpoint-*")):
        match = _NAME.fullmatch(entry.name)
        if match is None:
            continue
        if (entry / MARK).is_file():
            found[int(match[1])] = entry
        else:
            shutil.rmtree(entry, ignore_errors=True)
    return found[max(found)] if found else None


def facts_of(folder: Path) -> dict[str, Any]:
    """What `mark_whole` was given."""
    facts: dict[str, Any] = json.loads((folder / MARK).read_text(encoding="utf-8"))
    return facts


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
