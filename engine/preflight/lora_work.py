"""Trainings and evaluations of ours that are under way, and those that lost their keeper."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.keeper.client import is_running
from engine.preflight.check import Check
from store.evaluation_job import EvaluationJobRecord
from store.reader import Reader
from store.records import TrainingRecord

WorkKind = Literal["training", "evaluation"]
_UNFINISHED = ("waiting", "running", "paused")
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class OurWork:
    """One that is not at its end, or whose processes (`pids`) live; `kept`: a living keeper carries it."""

    kind: WorkKind
    id: int
    name: str
    pids: tuple[int, ...]
    kept: bool

    @property
    def word(self) -> str:
        """By which the commands of `llmtune lora` know it."""
        return str(self.id) if self.kind == "training" else f"eval:{self.id}"


def read_lora_work(data_dir: Path, reader: Reader, marked: Mapping[int, str]) -> tuple[OurWork, ...]:
    """`marked` are the markers of live processes, by pid. Raises StoreError."""
    return (
        *_going_on(data_dir, "training", reader.trainings(), marked),
        *_going_on(data_dir, "evaluation", reader.evaluation_jobs(), marked),
    )


def _going_on(
    data_dir: Path,
    kind: WorkKind,
    rows: Iterable[TrainingRecord | EvaluationJobRecord],
    marked: Mapping[int, str],
) -> Iterable[OurWork]:
    for row in rows:
        assert row.id is not None
        pids = tuple(sorted(pid for pid, marker in marked.items() if row.marker and marker == row.marker))
        if pids or row.state in _UNFINISHED:
            yield OurWork(kind, row.id, row.name, pids, is_running(data_dir, kind, row.id))


def lora_checks(work: Iterable[OurWork]) -> list[Check]:
    """One for each kind of which there is something to say."""
    of: dict[WorkKind, list[OurWork]] = {}
    for one in work:
        of.setdefault(one.kind, []).append(one)
    return [_check(kind, found) for kind, found in of.items()]


def _check(kind: WorkKind, work: list[OurWork]) -> Check:
    if alone := [one for one in work if not one.kept]:
        shown = ", ".join(f"{one.id} ({one.name}, {_how(one)})" for one in alone[:_MOST_NAMED])
        more = " …" if len(alone) > _MOST_NAMED else ""
        word = alone[0].word
        advice = f"`llmtune lora resume {word}` goes on with it, `llmtune lora stop {word}` ends it"
        return Check(f"{kind}s", "warning", f"{len(alone)} without a keeper: {shown}{more}", advice)
    return Check(f"{kind}s", "ok", f"{len(work)} under way")


def _how(work: OurWork) -> str:
    return f"computes on as pid {work.pids[0]}" if work.pids else "stands still"
