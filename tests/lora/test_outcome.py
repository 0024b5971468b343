"""What is said of a training, while it runs and when it has ended."""

import pytest

from lora.process.outcome import events_of, may_go_on, origin_of, outcome_of
from lora.process.progress import Progress, told
from tests.store.examples import a_training


def ended(kind: str, **what: object) -> Progress:
    return told(Progress(step=7, checkpoint="c"), {"kind": kind, **what})


@pytest.mark.parametrize(
    ("progress", "code", "short", "stop", "state", "said"),
    [
        (ended("done"), 0, False, None, "done", ""),
        (ended("done"), 0, False, "stopped, as asked", "done", ""),
        (ended("failed", why="the loss is not a number"), 1, False, None, "failed", "the loss is not a number"),
        (ended("stopped"), 0, False, "stopped, as asked", "stopped", "stopped, as asked, at step 7"),
        (Progress(step=7), -9, False, "stopped, as asked", "stopped", "before its checkpoint was written"),
        (Progress(step=7), -9, True, None, "failed", "died at step 7: the kernel killed it for want of memory"),
        (Progress(step=7), -9, False, None, "failed", "died at step 7: it was killed"),
        (Progress(step=7), -9, None, None, "failed", "died at step 7: it was killed"),
        (Progress(step=7), -11, False, None, "failed", "by SIGSEGV at step 7: last words"),
        (
            Progress(step=7),
            3,
            False,
            None,
            "failed",
            "at step 7: the disk takes nothing more, not even a line about it",
        ),
        (Progress(step=0), 1, False, None, "failed", "with status 1 at step 0: last words"),
        (Progress(step=7), None, False, None, "failed", "died at step 7: it was killed, or the machine went down"),
        (Progress(step=7), None, True, None, "failed", "for want of memory"),
    ],
)
def test_how_it_ended(
    progress: Progress, code: int | None, short: bool | None, stop: str | None, state: str, said: str
) -> None:
    outcome = outcome_of(progress, code, short, "last words", stop)
    assert outcome.state == state
    assert said in outcome.message


def test_what_would_fail_alike_is_not_to_be_gone_on_with() -> None:
    assert may_go_on(Progress(checkpoint="c"))
    assert not may_go_on(Progress())
    assert not may_go_on(ended("failed", why="diverges", **{"class": "sick"}))
    assert may_go_on(ended("failed", why="out of memory", **{"class": "memory"}))


def test_steps_are_no_events_and_the_base_is_named() -> None:
    lines = [
        {"kind": "start"},
        {"kind": "plan", "step": 0, "steps": 9, "trainable": 5, "total": 500, "examples": 30, "dtype": "bfloat16",
         "device": "NVIDIA H200", "left_out": 2, "left_out_why": ["example 3: 2000 tokens"], "template": "plain"},
        {"kind": "eval", "step": 0, "eval_loss": 3.0},
        {"kind": "step", "step": 1, "loss": 2.0},
        {"kind": "checkpoint", "step": 1, "path": "x"},
    ]  # fmt: skip
    events = events_of(Progress(), lines)
    assert [level for _, level in events] == ["info", "warning", "warning", "info", "info"]
    assert events[0][0] == "trains 5 of 500 numbers (1.00 %) to step 9 on 30 examples, bfloat16 on the NVIDIA H200"
    assert "2 examples are left out, the first: example 3" in events[1][0]
    assert "no chat template" in events[2][0]
    assert events[3][0] == "validation loss 3 of the base"


def test_a_validation_loss_that_rose_again_is_said_with_the_step_to_take() -> None:
    before = Progress(evals=((0, 3.0), (10, 1.0), (20, 1.04)))
    assert events_of(before, [{"kind": "done"}]) == []
    before = Progress(evals=((0, 3.0), (10, 1.0), (20, 1.2)))
    ((text, level),) = events_of(before, [{"kind": "done"}])
    assert level == "warning"
    assert "lowest at step 10 (1), at step 20 it is 1.2: --steps 10 would learn as much" in text
    ((text, _),) = events_of(Progress(evals=((0, 1.0), (10, 2.0))), [{"kind": "done"}])
    assert "no step has lowered it" in text


def test_what_is_kept_with_the_adapter() -> None:
    training = a_training(id=3, base_hash="b", data_hash="d")
    plan = {"device": "NVIDIA H200", "dtype": "bfloat16", "versions": {"torch": "2"}}
    now = Progress(
        plan=plan, evals=((0, 3.0), (9, 1.0)), seconds=60.0, end="done", ending={"loss": 0.9, "gpu_peak_gib": 8}
    )
    origin = origin_of(training, now)
    assert origin.losses == {"train": 0.9, "validation": 1.0, "base_validation": 3.0}
    assert (origin.gpu, origin.seconds, origin.training_id, origin.base_hash, origin.data_hash) == (
        "NVIDIA H200",
        60.0,
        3,
        "b",
        "d",
    )
    assert origin.raw["gpu_peak_gib"] == 8
    assert origin_of(training, Progress(plan={"device": "processor"})).gpu is None
