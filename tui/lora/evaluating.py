"""An evaluation as work: how far it is, for its adapter's line, its details and the commands. Pure."""

from typing import Any

from engine.numbers import finite
from engine.text import clean
from store.evaluation_job import GOING_ON, EvaluationJobRecord
from tui.format import number, span
from tui.lora.standing import Held


def live_of(job: EvaluationJobRecord) -> dict[str, Any]:
    """What it told of itself last."""
    live = job.raw.get("live")
    return live if isinstance(live, dict) else {}


def progress_line(job: EvaluationJobRecord) -> str:
    """`12 of 50 records, 0:40 left`."""
    if job.state == "waiting":
        return "waiting for its keeper"
    live = live_of(job)
    if job.records is None or live.get("stage") == "loading":
        return "loading the model"
    if live.get("stage") == "answers":
        return f"{number(finite(job.records))} records, answering the questions"
    left = finite(live.get("seconds_left"))
    return f"{_measured(job)}{'' if left is None else f', {span(left)} left'}"


def share_text(job: EvaluationJobRecord, held: Held) -> str:
    """`◐ 75 %` of its records while it is under way, with `!` where nobody keeps it; "" once it has ended."""
    if job.state not in GOING_ON:
        return ""
    done, records = finite(job.done), finite(job.records)
    share = f"{min(100.0, 100 * done / records):.0f} %" if done is not None and records else "…"
    return f"{'!' if job.state == 'running' and held != 'kept' else '◐'} {share}"


def job_text(job: EvaluationJobRecord, held: Held) -> str:
    """Where it stands and what to do about it; "" of one that is done, whose result says all."""
    called = f"evaluation {job.id}"
    if job.state in GOING_ON:
        if job.state == "waiting" or held == "kept":
            return f"{called}: {progress_line(job)}; x stops it"
        if held == "alone":
            return f"{called} computes on, but nobody keeps it: R follows it again"
        return f"{called} has ended unkept, after {_measured(job)}: R goes on with it"
    if job.state == "stopped":
        return f"{called} was stopped after {_measured(job)}: R goes on with it"
    return f"{called} failed: {clean(job.message or 'its keeper says no more', 300)}" if job.state == "failed" else ""


def _measured(job: EvaluationJobRecord) -> str:
    return f"{number(finite(job.done))} of {number(finite(job.records))} records"
