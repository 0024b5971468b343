"""What is said of a training: its events, how it ended, and what is kept with its adapter."""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.numbers import finite
from engine.text import clean
from lora.adapters.registry import Origin
from lora.process.progress import Progress, told
from lora.standalone.llmtune_telling import DISK_FULL
from store.records import EventLevel, TrainingRecord

RISEN = 1.05
"""The validation loss is said to have risen where it ends so many times above its lowest: evaluations of the same part
differ by nothing but the weights, and less is not worth a line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A training's last state and its message."""

    state: Literal["done", "stopped", "failed"]
    message: str


def events_of(before: Progress, lines: Iterable[Mapping[str, Any]]) -> list[tuple[str, EventLevel]]:
    """What is worth a line of history in what a trainer told after `before`. Steps are not: they are the curve."""
    found: list[tuple[str, EventLevel]] = []
    now = before
    for line in lines:
        now = told(now, line)
        kind, step = line.get("kind"), line.get("step")
        if kind == "plan":
            found += _of_plan(line)
        elif kind == "eval" and now.eval_loss is not None:
            which = "of the base" if step == 0 else f"at step {step}"
            found.append((f"validation loss {now.eval_loss:.4g} {which}", "info"))
        elif kind == "checkpoint":
            found.append((f"checkpoint at step {step}", "info"))
        elif kind == "done":
            found += _of_end(now)
    return found


def _of_plan(plan: Mapping[str, Any]) -> list[tuple[str, EventLevel]]:
    trainable, total = finite(plan.get("trainable")) or 0.0, finite(plan.get("total")) or 0.0
    begun = f"from step {plan.get('step')} " if plan.get("step") else ""
    device, dtype = clean(str(plan.get("device")), 60), clean(str(plan.get("dtype")), 20)
    share = f" ({100 * trainable / total:.2f} %)" if total else ""
    text = (
        f"trains {trainable:,.0f} of {total:,.0f} numbers{share} {begun}to step {plan.get('steps')} on "
        f"{plan.get('examples')} examples, {dtype} on the {device}"
    )
    found: list[tuple[str, EventLevel]] = [(text, "info")]
    if left_out := plan.get("left_out"):
        why = plan.get("left_out_why") or [""]
        found.append((f"{left_out} examples are left out, the first: {clean(str(why[0]), 300)}", "warning"))
    if plan.get("template") == "plain":
        text = "the model has no chat template: the plain one lies beside the adapter, a server needs it too"
        found.append((text, "warning"))
    return found


def _of_end(now: Progress) -> list[tuple[str, EventLevel]]:
    if len(now.evals) < 2:
        return []
    step, lowest = min(now.evals, key=lambda point: point[1])
    last, loss = now.evals[-1]
    if loss <= RISEN * lowest:
        return []
    lead = "no step has lowered it" if step == 0 else f"--steps {step} would learn as much"
    return [
        (
            f"the validation loss was lowest at step {step} ({lowest:.4g}), at step {last} it is {loss:.4g}: {lead}",
            "warning",
        )
    ]


def outcome_of(
    progress: Progress,
    exit_code: int | None,
    short_of_memory: bool | None,
    last_words: str,
    stop_reason: str | None,
) -> Outcome:
    """How a trainer ended that runs no more; arguments as those of `death`."""
    if progress.end == "done":
        return Outcome("done", "")
    if progress.end == "failed":
        return Outcome("failed", clean(str(progress.ending.get("why")), 600))
    if progress.end == "stopped" or stop_reason is not None:
        where = f"at step {progress.step}" if progress.end == "stopped" else "before its checkpoint was written"
        return Outcome("stopped", f"{stop_reason or 'the trainer was told to end'}, {where}")
    return Outcome("failed", death("the trainer", f"at step {progress.step}", exit_code, short_of_memory, last_words))


def death(who: str, where: str, exit_code: int | None, short_of_memory: bool | None, last_words: str) -> str:
    """Why a process ended that has not said so itself. `exit_code` is None where it was no child of ours, negative for
    a signal; `short_of_memory` says whether the kernel has killed for want of memory meanwhile, None where that cannot
    be told; `last_words` are of its log."""
    if exit_code == DISK_FULL:
        return f"{who} ended {where}: the disk takes nothing more, not even a line about it; free some"
    if exit_code in (None, -signal.SIGKILL):
        by_somebody = "it was killed (SIGKILL)" if exit_code is not None else "it was killed, or the machine went down"
        return f"{who} died {where}: {'the kernel killed it for want of memory' if short_of_memory else by_somebody}"
    how = f"by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"with status {exit_code}"
    return f"{who} ended {how} {where}: {last_words or 'it said nothing'}"


def may_go_on(progress: Progress) -> bool:
    """Whether a training that failed would not fail alike from its newest checkpoint."""
    return progress.checkpoint is not None and progress.ending.get("class") not in ("sick", "unfit", "unusable")


def origin_of(training: TrainingRecord, progress: Progress) -> Origin:
    """What is kept with the adapter of a training that is done."""
    evals = progress.evals
    losses: dict[str, Any] = {"train": progress.final_loss, "validation": evals[-1][1] if evals else None}
    if evals and evals[0][0] == 0:
        losses["base_validation"] = evals[0][1]
    plan = progress.plan
    device = plan.get("device")
    return Origin(
        base_model=training.base_model,
        base_hash=training.base_hash,
        data_hash=training.data_hash,
        losses=losses,
        gpu=None if device in (None, "processor") else clean(str(device), 100),
        seconds=progress.seconds,
        training_id=training.id,
        raw={
            "settings": training.settings,
            "steps": progress.steps,
            "gpu_peak_gib": finite(progress.ending.get("gpu_peak_gib")),
            **{key: plan.get(key) for key in ("dtype", "versions", "template", "examples", "left_out")},
        },
    )
