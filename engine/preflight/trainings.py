"""Trainings of ours that are under way, and those that lost their keeper."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.keeper.client import is_running
from engine.preflight.check import Check
from store.reader import Reader

_UNFINISHED = ("waiting", "running", "paused")
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class OurTraining:
    """One that is not at its end, or whose processes (`pids`) live; `kept`: a living keeper carries it."""

    id: int
    name: str
    pids: tuple[int, ...]
    kept: bool


def read_trainings(data_dir: Path, reader: Reader, marked: Mapping[int, str]) -> tuple[OurTraining, ...]:
    """`marked` are the markers of live processes, by pid. Raises StoreError."""
    found = []
    for row in reader.trainings():
        assert row.id is not None
        pids = tuple(sorted(pid for pid, marker in marked.items() if row.marker and marker == row.marker))
        if pids or row.state in _UNFINISHED:
            found.append(OurTraining(row.id, row.name, pids, is_running(data_dir, "training", row.id)))
    return tuple(found)


def training_checks(trainings: tuple[OurTraining, ...]) -> list[Check]:
    """None where there is nothing to say."""
    if not trainings:
        return []
    if alone := [one for one in trainings if not one.kept]:
        shown = ", ".join(f"{one.id} ({one.name}, {_how(one)})" for one in alone[:_MOST_NAMED])
        more = " …" if len(alone) > _MOST_NAMED else ""
        advice = f"`llmtune lora resume {alone[0].id}` goes on with it, `llmtune lora stop {alone[0].id}` ends it"
        return [Check("trainings", "warning", f"{len(alone)} without a keeper: {shown}{more}", advice)]
    return [Check("trainings", "ok", f"{len(trainings)} under way")]


def _how(training: OurTraining) -> str:
    return f"computes on as pid {training.pids[0]}" if training.pids else "stands still"
