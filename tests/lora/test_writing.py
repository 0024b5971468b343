"""A data set on disk: whole or not at all, for its owner alone, the same bytes for the same conversations."""

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from lora.data.examining import examine
from lora.data.lines import read_examples
from lora.data.records import Examination
from lora.data.report import report_json
from lora.data.writing import FOLDER, TRAIN, VALIDATION, name_of, write_dataset
from lora.records import DataUnfit, LoraError
from store.database import open_reader, open_writer
from store.location import database_file


@pytest.fixture
def found(tmp_path: Path) -> Examination:
    path = tmp_path / "data.jsonl"
    lines = [json.dumps({"prompt": f"question {i} é\u2028", "completion": f"a\n{i}"}) for i in range(20)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return examine(path, seed=5)


def test_both_parts_and_their_row_are_written(tmp_path: Path, found: Examination) -> None:
    place = tmp_path / "place"
    before = os.umask(0o000)
    try:
        with open_writer(database_file(place)) as writer:
            kept = write_dataset(place, writer, found, "mine", report_json(found))
    finally:
        os.umask(before)
    with open_reader(database_file(place)) as reader:
        assert reader.dataset("mine") == kept
    folder = place / FOLDER / "1-mine"
    assert place / kept.path == folder
    assert sorted(each.name for each in folder.iterdir()) == [TRAIN, VALIDATION]
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert [each.messages for each in read_examples(folder / TRAIN)] == [each.messages for each in found.train]
    assert [each.messages for each in read_examples(folder / VALIDATION)] == [
        each.messages for each in found.validation
    ]
    assert (kept.train_examples, kept.validation_examples, kept.train_tokens) == (18, 2, None)
    assert kept.sources[0]["sha256"] == hashlib.sha256((tmp_path / "data.jsonl").read_bytes()).hexdigest()
    assert kept.report["records"] == 20


def test_the_hash_is_what_the_shell_says(tmp_path: Path, found: Examination) -> None:
    """`sha256sum train.jsonl validation.jsonl | sha256sum`"""
    with open_writer(database_file(tmp_path)) as writer:
        kept = write_dataset(tmp_path, writer, found, "mine", {})
        again = write_dataset(tmp_path, writer, found, "other", {})
    sums = [
        f"{hashlib.sha256((tmp_path / kept.path / name).read_bytes()).hexdigest()}  {name}\n"
        for name in (TRAIN, VALIDATION)
    ]
    assert kept.data_hash == hashlib.sha256("".join(sums).encode()).hexdigest() == again.data_hash
    assert again.path == f"{FOLDER}/2-other"


def test_a_disk_that_refuses_leaves_nothing(
    tmp_path: Path, found: Examination, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    with open_writer(database_file(place)) as writer:

        def full(path: Path, text: str) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("lora.data.writing.write_new_private", full)
            with pytest.raises(LoraError, match="No space left on device"):
                write_dataset(place, writer, found, "mine", {})
        (place / FOLDER / "1-mine").mkdir()
        (place / FOLDER / "1-mine" / "somebody's").touch()
        with pytest.raises(LoraError, match="cannot be written"):
            write_dataset(place, writer, found, "mine", {})
    assert [each.name for each in (place / FOLDER).iterdir()] == ["1-mine"]
    assert (place / FOLDER / "1-mine" / "somebody's").exists()
    with open_reader(database_file(place)) as reader:
        assert reader.datasets() == []


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/My data (v2).json", "My-data-v2"), ("x.jsonl", "x"), ("数据.json", "dataset"), ("..json", "dataset")],
)
def test_a_data_set_is_called_like_its_file(path: str, name: str) -> None:
    assert name_of(Path(path)) == name


def test_a_prepared_file_that_was_changed_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / TRAIN
    path.write_text('{"messages": [{"role": "user", "content": "a"}]}\n{"messages"\n', encoding="utf-8")
    with pytest.raises(DataUnfit, match=r"train.jsonl:2 is not as it was prepared"):
        read_examples(path)
    with pytest.raises(DataUnfit, match="cannot be read"):
        read_examples(tmp_path / "none.jsonl")
