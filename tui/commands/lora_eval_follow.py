"""An evaluation in progress at a terminal: how far it is, and in the end what it found."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.text import clean
from lora.process.process_life import Life
from lora.process.work import OVER
from store.evaluation_job import EvaluationJobRecord
from tui.commands.keeper_watch import KeeperWatch
from tui.commands.lora_eval_text import evaluation_json, evaluation_lines, job_json
from tui.commands.lora_follow import LOOK_EVERY_S, hindrance
from tui.commands.lora_meant import word_of
from tui.commands.places import reading
from tui.lora.evaluating import progress_line
from tui.output import complain, say, say_json

if TYPE_CHECKING:
    from store.reader import Reader

Form = Literal["lines", "result", "stream"]
"""For a person; the result as one JSON object; an object a line, with the progress."""


def follow_evaluation(
    place: Path,
    number: int,
    *,
    form: Form = "lines",
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Tell an evaluation's progress until it ends, then what it found. Exit status: 0 done, 1 failed, stopped or left
    without a keeper, 130 on Ctrl-C, which leaves it going."""
    keeper = KeeperWatch(place, "evaluation", number, monotonic)
    word = word_of("evaluation", number)
    shown = _Shown(form)
    held_up: str | None = None
    with reading(place) as reader:
        job = reader.evaluation_job(number)
        try:
            while True:
                if job.state in OVER:
                    shown.end()
                    return _finish(reader, job, form)
                shown.tell(job)
                blocked = hindrance(place, "evaluation", number)
                if blocked is not None and blocked != held_up:
                    shown.end()
                    complain(blocked)
                held_up = blocked
                if keeper.gone():
                    shown.end()
                    how = "it computes on, " if Life.left(job) is not None else ""
                    complain(f"nothing keeps evaluation {number} now: {how}`llmtune lora resume {word}` does")
                    return 1
                sleep(LOOK_EVERY_S)
                job = reader.evaluation_job(number)
        except KeyboardInterrupt:
            shown.end()
            complain(
                f"evaluation {number} of {job.name} goes on without this terminal: `llmtune lora attach {word}` comes "
                f"back to it, `llmtune lora stop {word}` ends it"
            )
            return 130


class _Shown:
    """For a person one line on a terminal's standard error, written over; in a stream an object for each news."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._last: object = None
        self._width = 0

    def tell(self, job: EvaluationJobRecord) -> None:
        if self._form == "stream":
            news = (job.state, job.done, job.records)
            if news != self._last:
                say_json({"type": "progress", **job_json(job)}, compact=True)
            self._last = news
        elif self._form == "lines" and sys.stderr.isatty():
            line = progress_line(job)
            print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def end(self) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


def _finish(reader: "Reader", job: EvaluationJobRecord, form: Form) -> int:
    found = next((each for each in reader.evaluations(job.adapter_id) if each.id == job.id), None)
    as_json = None if found is None else evaluation_json(job.name, found)
    if form == "stream":
        say_json({"type": "result", "work": job_json(job), "evaluation": as_json}, compact=True)
    elif found is not None and form == "result":
        say_json({"evaluation": as_json})
    elif found is not None:
        for line in evaluation_lines(job.name, found):
            say(line)
    if found is None or job.state != "done":
        said = clean(job.message or "its keeper says no more", 700)
        more = ""
        if job.state == "stopped":
            more = f": `llmtune lora resume {word_of('evaluation', job.id)}` goes on with it"
        complain(f"evaluation {job.id} of {job.name} {job.state}: {said}{more}")
        return 1
    return 0
