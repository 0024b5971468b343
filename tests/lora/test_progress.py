"""What a trainer tells, read while it is written and after it was killed."""

import json
from pathlib import Path
from typing import Any

from lora.process.progress import POINTS, Curve, Progress, ProgressFile, told


def of(*lines: dict[str, Any]) -> Progress:
    progress = Progress()
    for line in lines:
        progress = told(progress, line)
    return progress


def steps(first: int, last: int, second: float = 2.0, loss: float = 1.0) -> list[dict[str, Any]]:
    return [
        {"kind": "step", "step": step, "loss": loss, "seconds": step * second, "tokens_per_s": 80.0, "gpu_gib": None}
        for step in range(first, last + 1)
    ]


def test_the_newest_step_and_evaluation_stand() -> None:
    now = of(
        {"kind": "plan", "step": 0, "steps": 20, "trainable": 7},
        *steps(1, 4),
        {"kind": "eval", "step": 4, "eval_loss": 1.5},
    )
    assert (now.step, now.steps, now.loss, now.eval_loss, now.seconds) == (4, 20, 1.0, 1.5, 8.0)
    assert now.plan["trainable"] == 7
    assert now.live["tokens_per_s"] == 80.0
    assert now.live["gpu_gib"] is None
    assert now.evals == ((4, 1.5),)


def test_time_left_is_that_of_the_last_steps() -> None:
    begun = {"kind": "plan", "step": 0, "steps": 100}
    assert of(begun, *steps(1, 1)).seconds_left is None
    slow_then_fast = [
        *steps(1, 10, 60.0),
        *({**line, "seconds": 600 + 2.0 * (line["step"] - 10)} for line in steps(11, 50)),
    ]
    assert of(begun, *slow_then_fast).seconds_left == 100.0


def test_what_is_made_again_after_a_kill_counts_once() -> None:
    first = [
        {"kind": "start"},
        {"kind": "plan", "step": 0, "steps": 20},
        *steps(1, 7, loss=1.0),
        {"kind": "eval", "step": 6, "eval_loss": 2.0},
    ]
    again = [
        {"kind": "start"},
        {"kind": "plan", "step": 5, "steps": 20},
        *steps(6, 8, loss=3.0),
        {"kind": "eval", "step": 6, "eval_loss": 1.9},
    ]
    now = of(*first, *again)
    assert [point for point in now.curve.shown if point[0] in (5, 6, 7, 8)] == [(5, 1.0), (6, 3.0), (7, 3.0), (8, 3.0)]
    assert now.evals == ((6, 1.9),)
    assert now.begun_at == 5


def test_an_earlier_end_is_forgotten_when_it_begins_again() -> None:
    failed = {"kind": "failed", "why": "x", "class": "sick"}
    assert of({"kind": "start"}, failed).end == "failed"
    assert of({"kind": "start"}, failed, {"kind": "start"}).end is None


def test_numbers_that_are_none_are_none() -> None:
    now = of(
        {"kind": "step", "step": 3, "loss": None, "grad_norm": "much", "seconds": float("nan")},
        {"kind": "step", "step": True, "loss": 1.0},
        {"kind": "?"},
        {},
    )
    assert (now.step, now.loss, now.live["grad_norm"], now.seconds) == (3, None, None, None)
    assert now.curve.shown == ()


def test_a_long_curve_keeps_its_means() -> None:
    curve = Curve()
    for step in range(1, 10_001):
        curve = curve.added(step, float(step))
    assert POINTS / 2 <= len(curve.shown) <= POINTS
    assert curve.shown[-1][0] == 10_000
    width = curve.stride
    assert curve.points[0] == (width, (width + 1) / 2)
    assert sum(loss * width for _, loss in curve.points) + sum(loss for _, loss in curve.pending) == 10_000 * 10_001 / 2


def test_the_file_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    file = ProgressFile(path)
    assert file.read_new() == []
    path.write_bytes(b'{"kind": "start"}\n{"kind": "st')
    assert file.read_new() == [{"kind": "start"}]
    with path.open("ab") as more:
        more.write(b'ep", "step": 1}\n')
    assert file.read_new() == [{"kind": "step", "step": 1}]
    assert file.read_new() == []


def test_what_a_killed_process_half_wrote_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_bytes(
        b'{"kind": "step", "st{"kind": "start"}\n[1]\n\xff\xfe\n' + json.dumps({"kind": "done"}).encode() + b"\n"
    )
    assert ProgressFile(path).read_new() == [{"kind": "done"}]
