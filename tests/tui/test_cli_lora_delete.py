"""`llmtune lora delete`, as a person calls it."""

import io
import json
import sys
from pathlib import Path

import pytest

from store.database import open_writer
from tests.lora.made_adapters import write_adapter, write_model
from tests.store.examples import a_session
from tui.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With alpaca@1 and alpaca@2."""
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no vllm
    model = write_model(tmp_path / "tiny")
    for alpha in (8, 16):
        folder = write_adapter(tmp_path / str(alpha), lora_alpha=alpha, base_model_name_or_path=str(model))
        assert main(["lora", "import", str(folder), "--name", "alpaca"]) == 0
    return tmp_path / "data"


def labels(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["lora", "list", "--json"]) == 0
    return [f"{one['name']}@{one['version']}" for one in json.loads(capsys.readouterr().out)["adapters"]]


def test_a_version_is_deleted_where_that_was_agreed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lora", "delete", "alpaca@2"]) == 2  # nobody there to be asked
    assert "nothing was deleted: --yes does it without asking" in capsys.readouterr().err
    assert labels(capsys) == ["alpaca@1", "alpaca@2"]
    assert main(["lora", "delete", "alpaca@2", "--yes"]) == 0
    assert capsys.readouterr().out == "alpaca@2 is deleted; its number is not given again\n"
    assert labels(capsys) == ["alpaca@1"]
    for command in ("delete", "show", "serve", "eval"):
        assert main(["lora", command, "alpaca@2"]) == 2
        assert "alpaca@2 was deleted at 20" in capsys.readouterr().err
    assert main(["lora", "delete", "alpaca@1", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "adapter": "alpaca@1", "deleted": True}
    assert list((place / "adapters" / "alpaca").iterdir()) == []


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 2), ("", 2)])
def test_at_a_terminal_it_asks_once(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["lora", "delete", "alpaca@2"]) == status
    assert capsys.readouterr().err.count("Its files are gone for good. [y/N]") == 1
    assert labels(capsys) == (["alpaca@1"] if status == 0 else ["alpaca@1", "alpaca@2"])


def test_what_cannot_be_deleted_says_why(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_writer(place / "llmtune.db") as writer:
        modules = [f"alpaca={place}/adapters/alpaca/2"]
        writer.insert(a_session(state="done", plan={"server": {"lora-modules": modules}}))
    for words, status, said in (
        (["alpaca"], 2, "say which version, as alpaca@1 or alpaca@2"),
        (["alpaca@3"], 2, "of alpaca there is version 1, 2"),
        (["other"], 2, "say which version, as NAME@VERSION"),
        (["alpaca@2"], 1, "session 1 (done) has alpaca@2 in its plan"),
    ):
        capsys.readouterr()
        assert main(["lora", "delete", *words, "--yes"]) == status
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1
    assert main(["lora", "delete", "alpaca@2", "--yes", "--anyway"]) == 0
