"""What a trainer has told so far, from the JSON lines that it appends to its file."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.numbers import finite

POINTS = 512
"""Of a loss curve in the store, an even number; every step stands in the file."""
PACE_OVER = 20
"""Steps: the time that is left is reckoned from so many of the last."""

LIVE = ("learning_rate", "grad_norm", "tokens", "tokens_per_s", "gpu_gib", "gpu_peak_gib", "host_gib", "epoch")
ENDS = ("done", "failed", "stopped")

Point = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """Losses by step, each point the mean of `stride` steps and named by the last of them: two neighbours become one
    where there would be POINTS."""

    points: tuple[Point, ...] = ()
    stride: int = 1
    pending: tuple[Point, ...] = ()

    def added(self, step: int, loss: float) -> "Curve":
        pending = (*self.pending, (step, loss))
        if len(pending) < self.stride:
            return replace(self, pending=pending)
        points = (*self.points, _mean(pending))
        if len(points) < POINTS:
            return replace(self, points=points, pending=())
        return Curve(tuple(_mean(points[index : index + 2]) for index in range(0, POINTS, 2)), self.stride * 2)

    def until(self, step: int) -> "Curve":
        """Without what came after `step`: a training that goes on from there makes those steps again."""
        return replace(
            self,
            points=tuple(point for point in self.points if point[0] <= step),
            pending=tuple(point for point in self.pending if point[0] <= step),
        )

    @property
    def shown(self) -> tuple[Point, ...]:
        return (*self.points, _mean(self.pending)) if self.pending else self.points


def _mean(points: tuple[Point, ...]) -> Point:
    return points[-1][0], sum(loss for _, loss in points) / len(points)


@dataclass(frozen=True, slots=True)
class Progress:
    """`begun_at` is the step that the newest life went on from, `end` its last word (one of ENDS) with `ending` as it
    stands in the file. `pace` are steps and seconds of the newest life, its last PACE_OVER steps. `seconds` are of the
    training over all its lives."""

    plan: dict[str, Any] = field(default_factory=dict)
    begun_at: int = 0
    step: int = 0
    steps: int | None = None
    loss: float | None = None
    eval_loss: float | None = None
    seconds: float | None = None
    checkpoint: str | None = None
    live: dict[str, float | None] = field(default_factory=dict)
    curve: Curve = field(default_factory=Curve)
    evals: tuple[Point, ...] = ()
    pace: tuple[tuple[int, float], ...] = ()
    end: str | None = None
    ending: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the last steps, evaluations and checkpoints among them; None before the second step."""
        if self.steps is None or len(self.pace) < 2:
            return None
        (first, began), (last, now) = self.pace[0], self.pace[-1]
        return (self.steps - last) * (now - began) / (last - first) if last > first else None

    @property
    def final_loss(self) -> float | None:
        """The mean over the last tenth of the steps, as the trainer tells it in the end."""
        return finite(self.ending.get("loss")) if self.end == "done" else None


def told(before: Progress, line: Mapping[str, Any]) -> Progress:
    """The progress after one more line of the trainer's. What is not of the form that is known changes nothing."""
    kind = line.get("kind")
    step = _whole(line.get("step"))
    if kind == "start":
        return replace(before, end=None, ending={}, pace=())
    if kind == "plan":
        begun = step or 0
        return replace(
            before,
            plan={key: value for key, value in line.items() if key not in ("kind", "step")},
            begun_at=begun,
            step=begun,
            steps=_whole(line.get("steps")),
            curve=before.curve.until(begun),
            evals=tuple(point for point in before.evals if point[0] <= begun),
        )
    now = replace(before, seconds=_seconds(line, before))
    if kind == "step" and step is not None:
        loss, seconds = finite(line.get("loss")), finite(line.get("seconds"))
        pace = before.pace if seconds is None else (*before.pace, (step, seconds))[-PACE_OVER - 1 :]
        return replace(
            now,
            step=step,
            loss=loss,
            live={key: finite(line.get(key)) for key in LIVE},
            curve=before.curve if loss is None else before.curve.added(step, loss),
            pace=pace,
        )
    if kind == "eval" and step is not None:
        loss = finite(line.get("eval_loss"))
        others = tuple(point for point in before.evals if point[0] != step)
        return replace(now, eval_loss=loss, evals=others if loss is None else (*others, (step, loss)))
    if kind == "checkpoint":
        return replace(now, checkpoint=str(line.get("path")))
    if kind in ENDS:
        return replace(now, end=str(kind), ending=dict(line))
    return before


def _seconds(line: Mapping[str, Any], before: Progress) -> float | None:
    seconds = finite(line.get("seconds"))
    return before.seconds if seconds is None else seconds


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


class ProgressFile:
    """The lines of a trainer's file as they come. One that is not yet whole waits for its end; one that is no JSON
    object (written by a process that was killed) is passed over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    @property
    def offset(self) -> int:
        """Bytes that are read: where another may go on."""
        return self._offset

    def read_new(self, until: int | None = None) -> list[dict[str, Any]]:
        """What has come since the last call, up to byte `until` of the file; nothing where there is none. Raises
        OSError."""
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size <= self._offset:
                    return []
                file.seek(self._offset)
                text = file.read() if until is None else file.read(max(0, until - self._offset))
        except FileNotFoundError:
            return []
        whole, newline, _ = text.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        found = []
        for line in whole.splitlines():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                found.append(value)
        return found
