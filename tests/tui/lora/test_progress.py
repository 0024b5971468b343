"""What a trainer tells, whatever stands in its file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tui.lora_world import (
    PLANNED,
    a_training,
    progress_lines,
    tail,
)
from tui.lora.progress import Doing, Progress, ProgressTail, Step, with_record


def test_progress_is_followed_from_where_it_was_read_to(tmp_path: Path) -> None:
    followed = tail(tmp_path, progress_lines(50))
    first = followed.read()
    assert (len(first.steps), first.planned, first.steps[-1].step) == (50, PLANNED, 50)
    assert followed.read() is first
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"kind": "step", "step": 51, "loss": 1.5, "sec')
        file.flush()
        assert followed.read() is first  # not a whole line yet
        file.write('onds": 80}\n')
        file.flush()
    assert followed.read().steps[-1] == Step(51, loss=1.5, seconds=80.0)


def test_an_evaluation_joins_its_step(tmp_path: Path) -> None:
    step = tail(tmp_path, progress_lines(40)).read().steps[-1]
    assert step.step == 40
    assert step.loss is not None
    assert step.eval_loss == pytest.approx(1.7661, abs=1e-3)


def test_a_step_told_again_replaces_what_followed(tmp_path: Path) -> None:
    """As after a resumption from the checkpoint of step 2."""
    lines = [{"kind": "step", "step": at, "loss": 9.0 - at} for at in range(1, 6)]
    lines += [{"kind": "eval", "step": 5, "eval_loss": 1.0}, {"kind": "step", "step": 3, "loss": 0.5}]
    found = tail(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines)).read()
    assert [(step.step, step.loss) for step in found.steps] == [(1, 8.0), (2, 7.0), (3, 0.5)]
    assert found.last("eval_loss") is None


def test_a_resumption_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"kind": "plan", "step": 0, "steps": 9}]
    lines += [*({"kind": "step", "step": at, "loss": 1.0} for at in range(1, 6))]
    lines.append({"kind": "plan", "step": 4, "steps": 9})
    found = tail(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines)).read()
    assert [step.step for step in found.steps] == [1, 2, 3, 4]


def test_nothing_that_stands_in_a_file_harms(tmp_path: Path) -> None:
    lines = [
        "not json",
        "[1, 2]",
        '"text"',
        "null",
        '{"kind": "step"}',
        '{"kind": "step", "step": -1, "loss": 1}',
        '{"kind": "step", "step": 1e300, "loss": 1}',
        '{"kind": "step", "step": true, "loss": 1}',
        '{"kind": "step", "step": 1, "steps": "x", "loss": NaN, "gpu_gib": Infinity, "seconds": "soon"}',
        '{"kind": "step", "step": 2, "loss": 1e400, "learning_rate": null}',
        '{"kind": "other", "step": 3, "loss": 1}',
        "[" * 100_000,
        "\x00\xff",
    ]
    found = tail(tmp_path, "\n".join(lines) + "\n").read()
    assert found.steps == (Step(1), Step(2))
    assert found.planned is None
    assert found.seconds_left() is None


def test_what_a_trainer_does_beside_steps_is_over_with_its_next_line(tmp_path: Path) -> None:
    told: list[tuple[dict[str, Any], Doing | None]] = [
        ({"kind": "start", "pid": 7}, Doing("loading")),
        ({"kind": "plan", "step": 0, "steps": 9}, None),
        ({"kind": "doing", "what": "evaluation", "step": 0, "done": 3, "of": 9}, Doing("evaluation", 0, 3, 9)),
        ({"kind": "eval", "step": 0, "eval_loss": 2.0}, None),
        ({"kind": "doing", "what": "checkpoint", "step": 2}, Doing("checkpoint", 2)),
        ({"kind": "checkpoint", "step": 2}, None),
        ({"kind": "doing", "what": ["x"], "step": "y", "done": None}, None),
        ({"kind": "doing", "what": "adapter"}, Doing("adapter")),
        ({"kind": "done", "step": 9}, None),
    ]
    followed = tail(tmp_path, "")
    for line, doing in told:
        with (tmp_path / "progress.jsonl").open("a") as file:
            file.write(f"{json.dumps(line)}\n")
        assert followed.read().doing == doing
    assert followed.read().end == "done"
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"kind": "start"}\n')
    assert followed.read().end is None


def test_a_file_that_became_smaller_is_read_anew(tmp_path: Path) -> None:
    followed = tail(tmp_path, progress_lines(30))
    followed.read()
    (tmp_path / "progress.jsonl").write_text(progress_lines(3))
    assert len(followed.read().steps) == 3


def test_a_file_that_is_not_there_is_no_progress(tmp_path: Path) -> None:
    assert ProgressTail(tmp_path / "none").read() == Progress()
    (tmp_path / "folder").mkdir()
    assert ProgressTail(tmp_path / "folder").read().note == "the progress cannot be read: Is a directory"


def test_time_left_is_at_the_pace_of_the_newest_steps() -> None:
    """An evaluation of a minute between two of them counts for nothing."""
    steps = tuple(Step(at, seconds=2.0 * at + (60.0 if at > 15 else 0.0)) for at in range(1, 31))
    assert Progress(steps, 100).seconds_left() == pytest.approx(2.0 * 70)
    assert Progress(steps[:1], 100).seconds_left() is None
    assert Progress(steps, None).seconds_left() is None
    assert Progress(tuple(Step(at, seconds=5.0) for at in range(9)), 100).seconds_left() is None


def test_without_a_file_the_store_knows_the_curve() -> None:
    raw = {
        "curve": [[1, 2.0], [10, 1.5], "x", [3], [None, 1], [4, float("nan")]],
        "evals": [[0, 2.2], [10, 1.6]],
        "live": {"learning_rate": 1e-4, "tokens_per_s": 900.0, "gpu_gib": 7.5, "loss": "x"},
    }
    found = with_record(Progress(), a_training(step=12, loss=1.4, eval_loss=1.6, raw=raw))
    assert [step.step for step in found.steps] == [0, 1, 10, 12]
    assert (found.last("loss"), found.last("gpu_gib"), found.planned) == (1.4, 7.5, PLANNED)
    assert found.steps[2] == Step(10, loss=1.5, eval_loss=1.6)
    assert with_record(Progress(), a_training(step=None, steps=None)).steps == ()
