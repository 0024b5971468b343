"""`llmtune lora prepare`, as a person calls it: a report first, then a decision."""

import json
import sys
from pathlib import Path

import pytest

from lora.data.lines import read_examples
from store.database import open_reader
from store.records import DatasetRecord
from tests.lora.fake_transformers import make_model, make_transformers
from tests.terminal import Terminal
from tui.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.jsonl"
    lines = [json.dumps({"instruction": f"task {i}", "output": f"answer {i}"}) for i in range(40)]
    path.write_text("\n".join([*lines, "{", json.dumps({"instruction": "task", "output": ""})]), encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(make_transformers(tmp_path)))
    return make_model(tmp_path / "model")


def kept(place: Path) -> list[DatasetRecord]:
    if not (place / "llmtune.db").exists():
        return []
    with open_reader(place / "llmtune.db") as reader:
        return reader.datasets()


def test_without_a_terminal_nothing_is_kept_unless_it_is_said(
    place: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lora", "prepare", str(file)]) == 2
    told = capsys.readouterr()
    assert "42 records, JSON lines, form alpaca" in told.out
    assert "1 broken: no JSON (line 41" in told.out
    assert "1 with an empty answer (line 42)" in told.out
    assert told.err == "llmtune: nothing was kept: give --yes too, once the report is as you want it\n"
    assert kept(place) == []


def test_yes_keeps_it(place: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lora", "prepare", str(file), "--yes", "--validation", "0.25", "--seed", "4", "--name", "mine"]) == 0
    (record,) = kept(place)
    folder = place / record.path
    assert f"mine is kept as dataset 1 in {folder}" in capsys.readouterr().out
    assert (record.name, record.seed, record.train_examples, record.validation_examples) == ("mine", 4, 30, 10)
    assert len(read_examples(folder / "train.jsonl")) == 30
    assert record.report["left_out"][0]["lines"] == [41]


def test_the_same_again_is_kept_once(place: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lora", "prepare", str(file), "--yes"]) == 0
    assert main(["lora", "prepare", str(file)]) == 0
    assert "seeds is kept already as dataset 1" in capsys.readouterr().out
    assert main(["lora", "prepare", str(file), "--yes", "--seed", "1"]) == 0
    assert main(["lora", "prepare", str(file), "--yes", "--name", "other"]) == 0
    assert [(record.id, record.name) for record in kept(place)] == [(1, "seeds"), (2, "seeds"), (3, "other")]


def test_json_is_one_object_with_and_without_the_decision(
    place: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lora", "prepare", str(file), "--json"]) == 2
    first = json.loads(capsys.readouterr().out)
    assert first["schema"] == 1
    assert first["dataset"] is None
    assert first["report"]["records"] == 42
    assert main(["lora", "prepare", str(file), "--json", "--yes"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["report"] == first["report"]
    assert second["dataset"]["id"] == 1
    assert Path(second["dataset"]["path"], "train.jsonl").exists()


def test_tokens_are_counted_and_long_records_left_out(
    place: Path, file: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = json.dumps({"instruction": "task", "output": "word " * 2000})
    file.write_text(file.read_text() + "\n" + long, encoding="utf-8")
    arguments = ["lora", "prepare", str(file), "--model", str(model), "--python", sys.executable, "--yes"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "1 longer than the limit (line 43; line 43: 2,010 tokens)" in out
    assert "limit 1,024" in out
    (record,) = kept(place)
    assert (record.max_length, record.model) == (1024, str(model))
    assert record.train_tokens == 36 * 13
    assert main([*arguments, "--max-length", "4000"]) == 0
    assert "longer than the limit" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["none.jsonl"], 2, "cannot be read: no such file"),
        (["FILE", "--name", "../x"], 2, "--name ../x: use letters"),
        (["FILE", "--name", "12"], 2, "not a number alone"),
        (["FILE", "--max-length", "100"], 2, "give --model too"),
        (["FILE", "--model", "/no/such/model"], 1, "does not exist"),
        (["FILE", "--model", "MODEL", "--python", "/no/python"], 1, "is no Python"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    place: Path,
    file: Path,
    model: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    said: str,
) -> None:
    named = {"FILE": str(file), "MODEL": str(model)}
    assert main(["lora", "prepare", *[named.get(each, each) for each in arguments], "--yes"]) == status
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert kept(place) == []


@pytest.mark.parametrize("wrong", [["--validation", "0.6"], ["--validation", "nan"], ["--max-length", "0"]])
def test_numbers_out_of_bounds_are_refused(file: Path, wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["lora", "prepare", str(file), *wrong])
    assert ended.value.code == 2


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_file_without_answers_says_what_it_holds(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question_id": 1, "turns": ["a", "b"]}\n', encoding="utf-8")
    assert main(["lora", "prepare", str(path), "--yes", *form]) == 2
    told = capsys.readouterr()
    assert "has no question with an answer (fields: question_id, turns)" in told.err
    assert "1 without an answer to learn from (line 1" in told.out or json.loads(told.out)["dataset"] is None
    assert kept(place) == []


@pytest.mark.parametrize(("key", "number"), [(b"y\n", 1), (b"\n", 0), (b"n\n", 0), (b"\x04", 0)])
def test_a_person_at_a_terminal_is_asked(place: Path, file: Path, key: bytes, number: int) -> None:
    command = [sys.executable, "-m", "tui.cli", "lora", "prepare", str(file)]
    with Terminal(command, (80, 24), {"LLMTUNE_DATA_DIR": str(place)}, ROOT) as terminal:
        terminal.wait_for(r"Keep 36 train and 4 validation as seeds\? \[y/N\]")
        assert max(map(len, terminal.screen.splitlines())) <= 80
        terminal.press(key)
        assert terminal.ended() == 0
    assert len(kept(place)) == number
