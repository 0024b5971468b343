"""`llmtune lora eval|attach|stop|resume` of an evaluation: what is said, and with which status."""

import json
from pathlib import Path

import pytest

from engine.processes.process import is_alive
from lora.evaluations.evaluating import start_evaluation
from store.database import open_writer
from store.location import database_file
from tests.lora.evaluation_world import EvaluationWorld
from tests.store.examples import a_dataset, a_training, an_evaluation_job
from tui.cli import main
from tui.commands import lora_eval_follow
from tui.lora.evaluating import progress_line


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvaluationWorld:
    made = EvaluationWorld(tmp_path)
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(made.place))
    play(made, monkeypatch)
    return made


def play(world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch, **script: object) -> None:
    world.play(**script)
    for name in ("LLMTUNE_STAND_IN", "PYTHONPATH"):
        monkeypatch.setenv(name, world.environ[name])


def evaluate(world: EvaluationWorld, *more: str) -> int:
    return main(["lora", "eval", "made", "--data", str(world.file), "--python", world.python.python, *more])


def test_it_says_what_it_found(world: EvaluationWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(world) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("made@1 on 6 records, 24 answer tokens of ")
    assert lines[0].endswith(", 1 left out")
    assert [line.split() for line in lines[2:4]] == [["base", "2.0000", "7.39"], ["adapter", "1.0625", "2.89"]]
    assert "  adapter  <<A>>" in lines
    assert lines[-1].startswith("the adapter answers its data better than its base (-0.9375, 95 % from ")
    assert lines[-1].endswith("; better on 6 of 6 records")
    assert "records" not in said.err, "no progress where nobody looks"
    assert main(["lora", "attach", "made@1"]) == 0
    assert capsys.readouterr().out == said.out, "what was found is shown again"


def test_json_is_the_result(world: EvaluationWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(world, "--json", "--prompt", "Why?") == 0
    found = json.loads(capsys.readouterr().out)["evaluation"]
    assert (found["id"], found["adapter"], found["records"], found["direction"]) == (1, "made@1", 6, "better")
    assert found["base"]["loss"] == 2.0
    assert found["answers"] == [{"prompt": "Why?", "base": "ab", "adapter": "<<A>>"}]
    assert main(["lora", "attach", "eval:1", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["type"] == "result"
    assert json.loads(line)["evaluation"] == found


def test_it_goes_on_without_a_terminal(
    world: EvaluationWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(world, monkeypatch, pace=0.3)
    assert evaluate(world, "--no-wait") == 0
    assert capsys.readouterr().out == "evaluation 1 of made@1 has begun: `llmtune lora attach eval:1` shows it\n"
    world.until(1, lambda one: (one.done or 0) >= 1)
    assert main(["lora", "resume", "eval:1"]) == 0
    assert "runs already" in capsys.readouterr().out
    assert main(["lora", "list"]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("eval:1")]
    assert "running" in row
    assert "/6" in row
    assert main(["lora", "attach", "eval:last", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in lines] == [*["progress"] * (len(lines) - 1), "result"]
    assert len(lines) > 2
    assert {"done", "records", "seconds", "stage", "seconds_left", "state"} <= lines[0].keys()
    assert (lines[-1]["work"]["state"], lines[-1]["evaluation"]["records"]) == ("done", 6)


def test_ctrl_c_leaves_it_going(
    world: EvaluationWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(world, monkeypatch, pace=0.3)

    def interrupted(*_: object) -> str | None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(lora_eval_follow, "hindrance", interrupted)
        assert evaluate(world) == 130
    assert (
        "`llmtune lora attach eval:1` comes back to it, `llmtune lora stop eval:1` ends it" in capsys.readouterr().err
    )
    assert world.over(1).state == "done"


def test_stop_and_resume(
    world: EvaluationWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(world, monkeypatch, pace=0.3)
    assert evaluate(world, "--no-wait", "--json") == 0
    assert json.loads(capsys.readouterr().out)["evaluation"] == {"id": 1, "adapter": "made@1", "state": "running"}
    world.until(1, lambda one: (one.done or 0) >= 1)
    assert main(["lora", "stop", "made@1"]) == 0
    assert capsys.readouterr().out == "evaluation 1: stopping; what is measured stays\n"
    world.over(1)
    assert main(["lora", "attach", "eval:1"]) == 1
    said = capsys.readouterr().err
    assert "evaluation 1 of made@1 stopped: stopped, as asked, after" in said
    assert "`llmtune lora resume eval:1` goes on with it" in said
    assert main(["lora", "stop", "eval:1"]) == 2
    assert "evaluation 1 is stopped: there is nothing to stop" in capsys.readouterr().err
    assert main(["lora", "resume", "eval:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["message"] == "goes on with what is not yet measured"
    assert main(["lora", "attach", "eval:1"]) == 0
    capsys.readouterr()
    assert main(["lora", "resume", "eval:1"]) == 2
    assert "evaluation 1 is done: `llmtune lora attach eval:1` shows it" in capsys.readouterr().err


def test_one_that_lost_its_keeper_is_told_and_followed(
    world: EvaluationWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(world, monkeypatch, pace=1.0)
    assert evaluate(world, "--no-wait") == 0
    process = world.process(1)
    world.kill_keeper(1)
    capsys.readouterr()
    times = iter([0.0, 5.0, 20.0])
    status = lora_eval_follow.follow_evaluation(world.place, 1, sleep=lambda _: None, monotonic=lambda: next(times))
    assert status == 1
    assert (
        "nothing keeps evaluation 1 now: it computes on, `llmtune lora resume eval:1` does" in capsys.readouterr().err
    )
    assert main(["lora", "list"]) == 0
    assert "computes on" in capsys.readouterr().out
    assert is_alive(process)
    play(world, monkeypatch)
    assert main(["lora", "resume", "eval:1"]) == 0
    assert "is followed again: it went on alone" in capsys.readouterr().out
    assert world.process(1) == process
    assert main(["lora", "stop", "eval:1"]) == 0
    world.over(1)


def test_a_failure_has_its_reason_and_a_status(
    world: EvaluationWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(world, monkeypatch, at={"2": "nan"})
    assert evaluate(world) == 1
    assert "evaluation 1 of made@1 failed: the loss of the adapter on record 3 is no number" in capsys.readouterr().err


def test_a_training_and_an_evaluation_are_told_apart(
    world: EvaluationWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_writer(database_file(world.place)) as writer:
        writer.insert(a_training(writer.insert(a_dataset()), state="done", name="made"))
    start_evaluation(world.place, world.made(), world.environ)
    world.over(1)
    for word, what in (("1", "training 1"), ("made", "training 1"), ("last", "training 1"), ("eval:1", "evaluation 1")):
        assert main(["lora", "stop", word]) == 2
        assert f"{what} is done" in capsys.readouterr().err
    assert main(["lora", "stop", "eval:2"]) == 2
    assert "There is no evaluation '2'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": "waiting", "done": None, "records": None}, "waiting for its keeper"),
        ({"done": None, "records": None}, "loading the model"),
        ({"raw": {"live": {"stage": "loading"}}}, "loading the model"),
        ({"raw": {"live": {"stage": "records", "seconds_left": 40.0}}}, "12 of 50 records, 0:40 left"),
        ({"raw": {"live": "x"}}, "12 of 50 records"),
        ({"done": 50, "raw": {"live": {"stage": "answers"}}}, "50 records, answering the questions"),
    ],
)
def test_how_far_it_is_in_a_line(changes: dict[str, object], said: str) -> None:
    assert progress_line(an_evaluation_job(**changes)) == said
