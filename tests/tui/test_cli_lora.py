"""`llmtune lora list|show|import`, as a person calls them."""

import json
import os
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.keeper.lock import KeeperLock
from engine.keeper.places import keeper_places
from engine.processes.process import identify
from store.database import open_writer
from tests.lora.made_adapters import tiny_factors, write_adapter, write_model
from tests.store.examples import a_dataset, a_training, an_adapter
from tui.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no vllm
    return tmp_path / "data"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    model = write_model(tmp_path / "models" / "tiny")
    return write_adapter(tmp_path / "made" / "my adapter", base_model_name_or_path=str(model))


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_nothing_is_listed_before_anything_is_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lora", "list"]) == 0
    assert capsys.readouterr().out.startswith("there is no adapter yet: llmtune lora prepare FILE")
    assert main(["lora", "list", "--json"]) == 0
    assert answer(capsys) == {"schema": 1, "adapters": [], "trainings": [], "datasets": [], "evaluations": []}
    assert not (place / "llmtune.db").exists()


def test_an_adapter_is_imported_listed_and_shown(
    place: Path, adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lora", "import", str(adapter), "--notes", "first"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("my-adapter: r 4, alpha 8, q_proj v_proj, 320 parameters, ")
    assert "no vLLM was found" in lines[2]
    assert lines[-2] == "kept as my-adapter@1"
    model, copy = tmp_path / "models" / "tiny", place / "adapters" / "my-adapter" / "1"
    assert lines[-1] == f"vllm serve {model} --enable-lora --max-lora-rank 8 --lora-modules my-adapter={copy}"
    assert main(["lora", "import", str(adapter)]) == 0
    assert "the same files are there already: my-adapter@1" in capsys.readouterr().out
    assert main(["lora", "list"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "adapter"
    assert row.startswith("my-adapter@1")
    assert main(["lora", "show", "my-adapter"]) == 0
    out = capsys.readouterr().out
    assert f"imported from {adapter}" in out
    assert "notes   first" in out
    assert main(["lora", "show", "my-adapter@1", "--json"]) == 0
    shown = answer(capsys)
    assert shown["intact"] is True
    assert (copy / "adapter_config.json").is_file()


def test_what_vllm_would_refuse_is_said_and_not_kept(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dora = write_adapter(tmp_path / "dora", use_dora=True)
    assert main(["lora", "import", str(dora)]) == 1
    out, err = capsys.readouterr()
    assert "  refused    it is a DoRA adapter (use_dora)" in out
    assert "vLLM says: vLLM does not yet support DoRA." in out
    assert "not kept: it is a DoRA adapter (use_dora); --anyway keeps it all the same" in err
    assert main(["lora", "list", "--json"]) == 0
    assert answer(capsys)["adapters"] == []
    assert main(["lora", "import", str(dora), "--anyway", "--name", "d2"]) == 0
    assert main(["lora", "show", "d2"]) == 1


def test_a_check_keeps_nothing(place: Path, adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lora", "import", str(adapter), "--check", "--json"]) == 0
    checked = answer(capsys)
    assert (checked["prevented"], checked["max_lora_rank"], checked["adapter"]) == (False, 8, None)
    assert main(["lora", "import", str(write_adapter(tmp_path / "b", tiny_factors(8), r=4)), "--check"]) == 1
    assert "its tensors have rank 8, its config says 4" in capsys.readouterr().out
    assert not (place / "llmtune.db").exists()


def test_changed_files_are_told_and_not_examined(
    place: Path, adapter: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["lora", "import", str(adapter), "--name", "a"])
    weights = place / "adapters" / "a" / "1" / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    capsys.readouterr()
    assert main(["lora", "show", "a"]) == 1
    assert "a@1 is not what was registered: adapter_model.safetensors has changed" in capsys.readouterr().err
    assert main(["lora", "show", "a", "--json"]) == 1
    assert answer(capsys)["intact"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["import", "gone"], "gone is not there"),
        (["import", "."], "has no adapter_config.json"),
        (["show", "alpaca"], "nothing has been recorded"),
        (["import"], "FOLDER"),
        ([], "ACTION"),
        (["dance"], "invalid choice: 'dance'"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    arguments: list[str],
    words: str,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status: object = main(["lora", *arguments])
    except SystemExit as ended:
        status = ended.code
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_base_that_leads_nowhere_is_a_mistake(place: Path, adapter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lora", "import", str(adapter), "--name", "a"]) == 0
    for arguments in (["import", str(adapter)], ["show", "a"]):
        capsys.readouterr()
        assert main(["lora", *arguments, "--base", str(adapter / "gone")]) == 2
        assert "gone is no folder: name a model's folder or a hub name" in capsys.readouterr().err


def test_a_name_that_vllm_could_not_be_asked_by_is_refused(
    place: Path, adapter: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lora", "import", str(adapter), "--name", "a=b"]) == 2
    assert "'a=b' is no name for an adapter" in capsys.readouterr().err


def test_trainings_and_datasets_are_listed_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_writer(place / "llmtune.db") as writer:
        training = writer.insert(a_training(writer.insert(a_dataset(train_tokens=81234))))
        writer.insert(an_adapter(training_id=training))
    assert main(["lora", "list"]) == 0
    out = capsys.readouterr().out
    for words in ("alpaca@1", "1.3000", "20.2 MB", "12/180", "1.2500", "81,234"):
        assert words in out
    assert main(["lora", "list", "--json"]) == 0
    listed = answer(capsys)
    for table in ("adapters", "trainings", "datasets"):
        assert isinstance(listed[table], list)
        assert [entry["id"] for entry in listed[table]] == [1]
        assert os.path.isabs(listed[table][0]["path"])


def test_a_training_that_nobody_keeps_is_not_listed_as_running(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    me = identify(os.getpid())
    assert me is not None
    with open_writer(place / "llmtune.db") as writer:
        data = writer.insert(a_dataset())
        for name, process in (("kept", {}), ("alone", asdict(me)), ("left", {})):
            writer.insert(a_training(data, name=name, **process))
    lock = KeeperLock.acquire(keeper_places(place, "training", 1).lock)
    assert lock is not None
    assert main(["lora", "list"]) == 0
    out = capsys.readouterr().out
    for words in (r"1 +kept +running ", r"2 +alone +computes on ", r"3 +left +interrupted "):
        assert re.search(words, out), out
    lock.release()
