"""What is told and kept of the proof that adapters are in effect, on a server whose answers are known."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from lora.adapters.adapter_files import read_adapter
from lora.adapters.importing import Examined
from lora.data.lines import example_line
from lora.records import Example, LoraError, Message
from lora.served.proof import AnswerTokens
from lora.served.running import Running
from lora.served.server_api import ServerApi
from lora.served.serving import ToServe
from store.database import open_reader, open_writer
from store.records import AdapterRecord
from tests.lora.made_adapters import write_adapter, write_model
from tests.lora.scripted_server import LogProb, ScriptedServer
from tests.store.examples import a_dataset, a_server, an_adapter, an_evaluation
from tui.cli import main
from tui.commands import lora_proof
from tui.commands.lora_proof import Proofs

OPTIONS = {"no_proof": False, "records": 4, "dataset": None, "data": None, "python": None, "vllm": None}


def base(before: tuple[int, ...], token: int) -> float:
    return -3.0


class World:
    """A data directory with one adapter, and a server that holds it."""

    def __init__(self, place: Path, **adapter: Any) -> None:
        self.place = place
        with open_writer(place / "llmtune.db") as writer:
            number = writer.insert(an_adapter(name="a", **adapter))
        examined = Examined(read_adapter(write_adapter(place / "files")), "base", "0.32.0", 8, ())
        self.wanted = ToServe(an_adapter(name="a", id=number, **adapter), "a", place / "files", examined)

    def made(self, says: LogProb, **options: Any) -> tuple[list[dict[str, Any]], bool]:
        server = ScriptedServer({"base": base, "a": says}, {"a": "/a"})
        args = argparse.Namespace(**{**OPTIONS, **options})
        with (
            Proofs(args, self.place, "base", [self.wanted], "vllm") as proofs,
            ServerApi("http://server", transport=server.transport()) as api,
        ):
            return proofs.make(api, Running(a_server(id=7), api.models()), quiet=False)

    def kept(self) -> AdapterRecord:
        with open_reader(self.place / "llmtune.db") as reader:
            return reader.adapter("a")


def test_without_its_data_that_it_differs_is_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path)
    done, proved = world.made(lambda before, token: -2.5)
    assert proved
    assert (done[0]["state"], done[0]["data"], done[0]["losses"]) == ("differs", None, None)
    out = capsys.readouterr().out
    assert "a@1 as a: in effect: it answers differently" in out
    assert "0.5000 nats a token" in out
    served = world.kept().served
    assert (served["state"], served["server_id"], served["change_nats"]) == ("differs", 7, 0.5)
    assert "at" in served


def test_what_changes_nothing_is_told_with_likely_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path)
    done, proved = world.made(base)
    assert (done[0]["state"], proved) == ("nothing", False)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("llmtune: a@1: NOT IN EFFECT: it changes nothing: likely it was saved before its first step")
    assert world.kept().served["in_effect"] is False


def test_data_that_is_gone_does_not_keep_an_adapter_from_being_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_writer(tmp_path / "llmtune.db") as writer:
        writer.insert(a_dataset(data_hash="77" * 32, path="datasets/gone"))
    world = World(tmp_path, data_hash="77" * 32)
    assert world.made(lambda before, token: -2.5)[0][0]["state"] == "differs"
    assert "cannot be read" in capsys.readouterr().err
    with pytest.raises(LoraError, match="cannot be read"):
        world.made(base, data=str(tmp_path / "nowhere"))


def test_nothing_is_asked_where_no_proof_is_wanted(tmp_path: Path) -> None:
    assert World(tmp_path).made(base, no_proof=True) == ([], True)


def test_own_answers_that_are_too_long_for_the_server_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(example_line(Example((Message("user", "a"), Message("assistant", "b")), 1)) for _ in range(2))
    (tmp_path / "v.jsonl").write_text(text)
    long = AnswerTokens(tuple(range(100)), (99,))
    monkeypatch.setattr(lora_proof, "answer_tokens", lambda *_: (long,))
    monkeypatch.setattr(lora_proof, "training_python", lambda *_: None)
    with pytest.raises(LoraError, match="fits into the 64 tokens of the server"):
        World(tmp_path).made(base, data=str(tmp_path / "v.jsonl"))


def test_what_was_measured_and_proved_is_shown_of_a_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_adapter(tmp_path / "made")
    where = ["--data-dir", str(tmp_path / "data")]
    main(["lora", "import", str(folder), "--name", "a", "--anyway", "--base", str(write_model(tmp_path / "m")), *where])
    with open_writer(tmp_path / "data" / "llmtune.db") as writer:
        writer.insert(an_evaluation(1))
        writer.update(AdapterRecord, 1, served={"state": "wrong_direction", "at": "2026-11-30T10:00:00.000Z"})
    capsys.readouterr()
    main(["lora", "show", "a", *where])
    out = capsys.readouterr().out
    assert "tested  loss 1.3000 where its base has 2.1000 (-0.8000, 95 % from -0.9000 to -0.7000) on 50 records" in out
    assert "served  wrong direction, " in out
