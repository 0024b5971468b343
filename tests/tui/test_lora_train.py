"""`llmtune lora train|attach|stop|resume`: what is said, what is refused, and with which status."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import tui.commands.lora_train as lora_train
from lora.trainings.memory_free import Holder, MemoryFree
from lora.trainings.memory_shared import Sharing
from tests.lora.training_world import World
from tui.cli import main
from tui.lora.train_parser import _targets

PLENTY = MemoryFree("GPU 0 (NVIDIA H200)", True, 139.0, 140.0)
HELD = replace(PLENTY, free_gib=0.1, holders=(Holder("pid 77 (vllm, our server 3, chat) 139.0 GiB", 139.0, 77, 3),))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(made.place))
    monkeypatch.setattr(lora_train, "memory_free", lambda *_: PLENTY)
    play(made, monkeypatch)
    return made


def play(world: World, monkeypatch: pytest.MonkeyPatch, **script: object) -> None:
    world.play(**script)
    monkeypatch.setenv("LLMTUNE_STAND_IN", world.environ["LLMTUNE_STAND_IN"])


def train(world: World, *more: str) -> int:
    model = ("--model", str(world.model), "--python", world.python.python)
    return main(["lora", "train", "seven", *model, "--steps", "8", "--max-length", "64", *more])


def test_it_says_what_it_comes_to_and_how_it_went(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(world, "--headless", "--r", "4", "--targets", "q_proj,v_proj") == 0
    out = capsys.readouterr().out
    assert "model-seven on " in out
    assert "adapter  320 of " in out, "as B counts the tiny model"
    assert "steps    8, of 8 examples each" in out
    assert "GPU 0 (NVIDIA H200) has 139.0 of 140.0 free" in out
    assert "time     not known before its first steps" in out
    assert "validation loss 2 of the base" in out
    assert "model-seven@1 is ready: llmtune lora eval model-seven@1" in out
    assert train(world, "--headless") == 0
    out = capsys.readouterr().out
    assert "time     about 0:08, as training 1, 1.00 s a step went" in out
    assert "the adapter is the same as model-seven@1" in out
    assert "model-seven@1 is ready" in out


def test_json_is_one_object_a_line(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(world, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["schema"] for line in lines} == {1}
    assert {line["type"] for line in lines} == {"event", "step", "result"}
    steps = [line for line in lines if line["type"] == "step"]
    assert {"step", "loss", "eval_loss", "learning_rate", "tokens_per_s", "gpu_gib", "seconds_left"} <= steps[-1].keys()
    assert lines[-1]["training"]["state"] == "done"
    assert lines[-1]["adapter"]["name"] == "model-seven"


def test_a_failure_has_its_reason_and_a_status(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(world, monkeypatch, at={"3": "sick"})
    assert train(world, "--headless") == 1
    assert "training 1 failed: the loss is not a number at step 3" in capsys.readouterr().err


def test_stop_attach_and_resume(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(world, monkeypatch, pace=0.3)
    assert train(world, "--no-wait") == 0
    assert "`llmtune lora attach 1` follows it" in capsys.readouterr().out
    world.until(1, lambda one: (one.step or 0) >= 1)
    assert main(["lora", "resume", "1"]) == 0
    assert "runs already" in capsys.readouterr().out
    assert main(["lora", "stop", "last", "--json"]) == 0
    assert "with a checkpoint" in json.loads(capsys.readouterr().out)["message"]
    world.over(1)
    assert main(["lora", "attach", "1"]) == 0
    assert "`llmtune lora resume 1` goes on with it" in capsys.readouterr().out
    assert main(["lora", "stop", "1"]) == 2
    assert "is stopped: there is nothing to stop" in capsys.readouterr().err
    assert main(["lora", "resume", "1"]) == 0
    assert "goes on from its newest checkpoint" in capsys.readouterr().out
    assert main(["lora", "attach", "model-seven", "--headless"]) == 0
    assert world.over(1).state == "done"
    assert main(["lora", "resume", "1"]) == 2
    assert "is done" in capsys.readouterr().err


def test_too_little_memory_names_the_server_that_holds_it(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lora_train, "memory_free", lambda *_: HELD)
    assert train(world, "--headless") == 1
    said = capsys.readouterr().err
    assert "not started: the training needs about" in said
    assert "our server 3, chat" in said
    assert "--stop-servers" in said
    assert not world.adapters()
    assert train(world, "--headless", "--anyway") == 0


def test_the_server_that_holds_it_is_stopped_where_that_is_wanted(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []

    def stop(place: Path, server_id: int) -> str:
        stopped.append(server_id)
        return "stopping"

    monkeypatch.setattr(lora_train, "memory_free", lambda *_: PLENTY if stopped else HELD)
    monkeypatch.setattr(lora_train, "stop_server", stop)
    assert train(world, "--headless", "--stop-servers") == 0
    assert stopped == [3]
    assert "server 3: stopping" in capsys.readouterr().err


def test_another_training_on_the_device_is_told_and_what_it_will_take_is_not_free(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = replace(PLENTY, trainings=(Sharing(9, "other", 1.0),))
    monkeypatch.setattr(lora_train, "memory_free", lambda *_: shared)
    assert train(world, "--headless") == 0
    assert "shared   training 9 (other) computes there too: both take longer" in capsys.readouterr().out
    full = replace(PLENTY, trainings=(Sharing(9, "other", 138.9),))
    monkeypatch.setattr(lora_train, "memory_free", lambda *_: full)
    assert train(world, "--headless") == 1
    said = capsys.readouterr().err
    assert "of which training 9 (other) is to take 138.9 GiB" in said
    assert "stop it (`llmtune lora stop 9`)" in said


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nothing", "--model", "MODEL"], 2, "There is no dataset 'nothing'"),
        (["seven", "--model", "/no/such/model"], 2, "does not exist"),
        (["seven"], 2, "give the base by --model"),
        (["seven", "--model", "MODEL", "--steps", "3", "--epochs", "1"], 2, "not allowed with"),
        (["seven", "--model", "MODEL", "--r", "0"], 2, "0 is not a whole number above 0"),
        (["seven", "--model", "MODEL", "--learning-rate", "nan"], 2, "nan is not a number above 0"),
        (["seven", "--model", "MODEL", "--max-length", "65"], 2, "more than the model's 64 positions"),
        (["seven", "--model", "MODEL", "--targets", "qkv", "--max-length", "64"], 1, "no layer of the model"),
        (["seven", "--model", "MODEL", "--name", "a/b", "--max-length", "64"], 1, "is no name for an adapter"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(
    world: World, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, said: str
) -> None:
    argv = ["lora", "train", *(str(world.model) if each == "MODEL" else each for each in arguments)]
    try:
        found = main([*argv, "--python", world.python.python])
    except SystemExit as error:  # argparse's own
        found = int(str(error.code))
    assert found == status
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not world.adapters()


def test_targets_are_names_or_all() -> None:
    assert _targets("all-linear") == "all-linear"
    assert _targets(" q_proj, v_proj,") == ("q_proj", "v_proj")
