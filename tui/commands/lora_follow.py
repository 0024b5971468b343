"""A training in progress as plain lines: what happened, how far it is, its end."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.keeper.client import call
from engine.numbers import finite
from engine.records import EngineError
from engine.text import clean
from lora.process.work import WorkKind
from store.records import EventRecord, TrainingRecord
from tui.commands.keeper_watch import KeeperWatch
from tui.commands.lora_text import adapter_json
from tui.commands.places import reading
from tui.format import local_clock, number, span
from tui.output import complain, say, say_json

if TYPE_CHECKING:
    from store.reader import Reader

LOOK_EVERY_S = 0.5
SAY_EVERY_S = 5.0
EVENTS_AT_ONCE = 1000
ENDED = ("done", "stopped", "failed")


def step_line(training: TrainingRecord) -> str:
    """How far it is, for a person."""
    live = live_of(training)
    parts = [f"step {number(training.step)} of {number(training.steps)}", f"loss {number(training.loss, 4)}"]
    if training.eval_loss is not None:
        parts.append(f"validation {training.eval_loss:.4f}")
    if (rate := finite(live.get("learning_rate"))) is not None:
        parts.append(f"learning rate {rate:.2e}")
    if (speed := finite(live.get("tokens_per_s"))) is not None:
        parts.append(f"{number(speed)} tokens/s")
    if (gpu := finite(live.get("gpu_gib"))) is not None:
        parts.append(f"GPU {gpu:.1f} GiB")
    if (left := finite(live.get("seconds_left"))) is not None:
        parts.append(f"{span(left)} left")
    return ", ".join(parts)


def live_of(training: TrainingRecord) -> dict[str, Any]:
    """The figures of its newest step."""
    live = training.raw.get("live")
    return live if isinstance(live, dict) else {}


def step_json(training: TrainingRecord) -> dict[str, Any]:
    """How far it is, as the stream of `--json` has it."""
    keys = ("step", "steps", "loss", "eval_loss", "seconds")
    return {"type": "step", **{key: getattr(training, key) for key in keys}, **live_of(training)}


@dataclass
class Told:
    """What has been told already."""

    events: set[int] = field(default_factory=set)
    step: int | None = None
    at: float = float("-inf")

    def new_events(self, reader: "Reader", training_id: int) -> list[EventRecord]:
        events = reader.events(training_id=training_id, limit=EVENTS_AT_ONCE)
        found = [event for event in events if event.id is not None and event.id not in self.events]
        self.events.update(event.id for event in found if event.id is not None)
        return found

    def is_news(self, training: TrainingRecord, now: float, every_s: float) -> bool:
        if not training.step or training.step == self.step or now - self.at < every_s:
            return False
        self.step, self.at = training.step, now
        return True


def follow(
    place: Path,
    training_id: int,
    *,
    as_json: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Tell a training's progress until it ends. Exit status: 0 done or stopped, 1 failed or left without a keeper, 130
    on Ctrl-C, which leaves the training going."""
    told = Told()
    keeper = KeeperWatch(place, "training", training_id, monotonic)
    held_up: str | None = None
    with reading(place) as reader:
        try:
            while True:
                # The state is read before the events: what is written in between is told by the next look or the last.
                training = reader.training(training_id)
                for event in told.new_events(reader, training_id):
                    _tell(event, as_json)
                if told.is_news(training, monotonic(), 0.0 if as_json else SAY_EVERY_S):
                    _tell_step(training, as_json)
                if training.state in ENDED:
                    return finish(reader, training, as_json, place)
                blocked = hindrance(place, "training", training_id)
                if blocked is not None and blocked != held_up:
                    complain(blocked)
                held_up = blocked
                if keeper.gone():
                    complain(f"nothing keeps training {training_id} now: `llmtune lora resume {training_id}` does")
                    return 1
                sleep(LOOK_EVERY_S)
        except KeyboardInterrupt:
            complain(
                f"training {training_id} goes on without this terminal: `llmtune lora attach {training_id}` comes back "
                f"to it, `llmtune lora stop {training_id}` ends it"
            )
            return 130


def _tell(event: EventRecord, as_json: bool) -> None:
    if as_json:
        say_json({"type": "event", "at": event.at, "level": event.level, "text": event.text}, compact=True)
    else:
        mark = "" if event.level == "info" else f"{event.level}: "
        say(f"{local_clock(event.at)}  {mark}{clean(event.text, 700)}")


def _tell_step(training: TrainingRecord, as_json: bool) -> None:
    if as_json:
        say_json(step_json(training), compact=True)
    else:
        say(f"{'':8}  {step_line(training)}")


def hindrance(place: Path, kind: WorkKind, number: int) -> str | None:
    """What its keeper waits for, None where for nothing."""
    try:
        blocked = call(place, kind, number, "status").get("blocked")
    except EngineError:  # gone, or busy: whoever looks at its lock tells
        return None
    return None if blocked is None else f"the {kind} waits to be written down, and goes on: {clean(str(blocked), 500)}"


def finish(reader: "Reader", training: TrainingRecord, as_json: bool, place: Path) -> int:
    """What came of a training that has ended; its exit status."""
    # By its label: the same training once more makes the same files, which stay the earlier one's version.
    made = [
        adapter for adapter in reader.adapters(training.adapter_name) if training.message == f"adapter {adapter.label}"
    ]
    if as_json:
        shown = asdict(training)
        for key in ("raw", "marker", "descendants"):
            shown.pop(key)
        adapter = adapter_json(made[-1], place) if made else None
        say_json({"type": "result", "training": shown, "adapter": adapter}, compact=True)
    elif training.state == "done" and made:
        label = made[-1].label
        say(f"{label} is ready: llmtune lora eval {label}, llmtune lora serve {label}")
    elif training.state == "stopped":
        say(f"`llmtune lora resume {training.id}` goes on with it")
    if training.state == "failed":
        complain(f"training {training.id} failed: {clean(training.message or 'its keeper says no more', 700)}")
        return 1
    return 0
