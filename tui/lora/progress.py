"""What a trainer tells of itself, a JSON line each: followed on the poller's thread, whatever stands in the file."""

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Literal

from engine.numbers import finite
from store.records import TrainingRecord

PROGRESS = "progress.jsonl"
READ_BYTES = 1 << 20  # at most in one reading: some thousand steps
LAST_STEPS = 20  # of which the time of a step is taken
LARGEST_STEP = 1e9  # beyond it a number is no step, and no axis takes it
MOST_STEPS = 50_000  # kept to be drawn; a longer training is drawn by its newest ones


@dataclass(frozen=True, slots=True)
class Step:
    """One step as the trainer told it. `seconds` is what the training took until then, `host_gib` the
    trainer's main memory, `loss` that of the training part
    since the step before, `eval_loss` that of the validation part where it was asked."""

    step: int
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    tokens_per_s: float | None = None
    grad_norm: float | None = None
    gpu_gib: float | None = None
    host_gib: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Doing:
    """What takes its time beside the steps: `done` of `of` conversations of an evaluation; the checkpoint of `step`."""

    what: Literal["loading", "evaluation", "checkpoint", "adapter"]
    step: int | None = None
    done: int | None = None
    of: int | None = None


ENDS = ("done", "failed", "stopped")
FIGURES = ("loss", "eval_loss", "learning_rate", "tokens_per_s", "grad_norm", "gpu_gib", "host_gib", "seconds")


@dataclass(frozen=True, slots=True)
class Progress:
    """`steps` in their order, one for each that something was told of; `planned` how many there are to be. `note` is
    why the file cannot be read. `doing` is what the trainer does instead of a step, as of its last line; `end` its last
    word, one of ENDS."""

    steps: tuple[Step, ...] = ()
    planned: int | None = None
    note: str | None = None
    doing: Doing | None = None
    end: str | None = None

    def last(self, figure: str) -> float | None:
        """The newest value of one of FIGURES."""
        for step in reversed(self.steps):
            value: float | None = getattr(step, figure)
            if value is not None:
                return value
        return None

    @property
    def seconds_a_step(self) -> float | None:
        """Of the newest steps, the median: an evaluation or a checkpoint between two of them counts for nothing."""
        timed = [(step.step, step.seconds) for step in self.steps[-4 * LAST_STEPS :] if step.seconds is not None]
        timed = timed[-LAST_STEPS - 1 :]
        paces = [
            (later - sooner) / (at - before)
            for (before, sooner), (at, later) in pairwise(timed)
            if at > before and later > sooner
        ]
        return median(paces) if paces else None

    def seconds_left(self) -> float | None:
        """At the pace of the newest steps; evaluations and checkpoints are not in it."""
        pace = self.seconds_a_step
        if pace is None or self.planned is None or not self.steps:
            return None
        return pace * max(0, self.planned - self.steps[-1].step)


class ProgressTail:
    """Follows one file. A step that is told again, after a training was resumed from a checkpoint, replaces what was
    told of it and of those after it. Not for several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0
        self._steps: dict[int, Step] = {}
        self._doing: Doing | None = None
        self._end: str | None = None
        self._last = Progress()

    def read(self) -> Progress:
        """The same object as before where nothing was added."""
        try:
            lines = self._new_lines()
        except FileNotFoundError:
            return self._last
        except OSError as error:
            return replace(self._last, note=f"the progress cannot be read: {error.strerror}")
        if not lines:
            return self._last
        planned = self._last.planned
        for line in lines:
            planned = self._take(line, planned)
        if len(self._steps) > MOST_STEPS:
            for step in sorted(self._steps)[: len(self._steps) - MOST_STEPS]:
                del self._steps[step]
        steps = tuple(self._steps[step] for step in sorted(self._steps))
        self._last = Progress(steps, planned, None, self._doing, self._end)
        return self._last

    def _new_lines(self) -> list[bytes]:
        """Whole ones; a file that became smaller is another, and read anew."""
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if size < self._at:
                self._at, self._steps, self._last = 0, {}, Progress()
                self._doing = self._end = None
            file.seek(self._at)
            data = file.read(READ_BYTES)
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) == READ_BYTES:
            end = len(data)  # no line of a trainer is that long
        self._at += end
        return data[:end].splitlines()

    def _take(self, line: bytes, planned: int | None) -> int | None:
        """One line's news into the steps; how many steps there are to be, as far as it is known after it."""
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return planned
        if not isinstance(told, dict):
            return planned
        planned = _whole(told.get("steps")) or planned
        at = _whole(told.get("step"))
        kind = told.get("kind")
        self._doing = _doing(told)
        self._end = str(kind) if kind in ENDS else None
        if at is None or kind not in ("plan", "step", "eval"):
            return planned
        if kind != "eval" and self._steps and at < next(reversed(self._steps)):
            for later in [step for step in self._steps if step > at]:
                del self._steps[later]
        if kind == "plan":  # its step is the one that a resumption goes on from
            return planned
        before = self._steps.get(at)
        figures = {key: _figure(told, key) for key in FIGURES}
        if before is not None:
            figures = {key: getattr(before, key) if value is None else value for key, value in figures.items()}
        self._steps[at] = Step(at, **figures)
        return planned


def with_record(progress: Progress, training: TrainingRecord) -> Progress:
    """With what the store holds where the file says nothing: a training whose folder was moved or cleared. Its row has
    a short curve, the evaluations and the newest figures."""
    planned = progress.planned or _whole(training.steps)
    if progress.steps:
        return replace(progress, planned=planned)
    steps: dict[int, dict[str, float | None]] = {}
    for figure, key in (("loss", "curve"), ("eval_loss", "evals")):
        for at, value in _pairs(training.raw.get(key)):
            steps.setdefault(at, {})[figure] = value
    newest = _whole(training.step)
    if newest is not None:
        live = training.raw.get("live")
        told = {key: _figure(live, key) for key in FIGURES} if isinstance(live, dict) else {}
        kept = {"loss": training.loss, "eval_loss": training.eval_loss, "seconds": training.seconds}
        known = {key: finite(value) for key, value in kept.items()}
        figures = {key: value for key, value in {**told, **known}.items() if value is not None}
        steps[newest] = {**figures, **steps.get(newest, {})}
    return replace(progress, steps=tuple(Step(at, **steps[at]) for at in sorted(steps)), planned=planned)


def _pairs(kept: object) -> list[tuple[int, float]]:
    """[[step, value], …] of a row, without what is none."""
    found = []
    for pair in kept if isinstance(kept, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            at, value = _whole(pair[0]), finite(pair[1])
            if at is not None and value is not None:
                found.append((at, value))
    return found


def _doing(told: dict[str, Any]) -> Doing | None:
    """What a line says that is done now; any other line ends it."""
    if told.get("kind") == "start":
        return Doing("loading")
    if told.get("kind") != "doing":
        return None
    step, done, of = (_whole(told.get(key)) for key in ("step", "done", "of"))
    what = told.get("what")
    return Doing(what, step, done, of) if what in ("evaluation", "checkpoint", "adapter") else None


def _figure(told: dict[str, Any], key: str) -> float | None:
    return finite(told.get(key))


def _whole(value: object) -> int | None:
    found = finite(value)
    return int(found) if found is not None and 0 <= found <= LARGEST_STEP else None
