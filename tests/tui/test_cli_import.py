"""`llmtune import`, as a person calls it."""

import json
import os
from pathlib import Path

import pytest

from store.database import open_reader
from tests.tuning.imported.results import BENCH, a_result
from tui.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "base.json").write_text(json.dumps(a_result(0)))
    (folder / "new.jsonl").write_text(f"{json.dumps(a_result(600, speed=1.006))}\n{json.dumps(a_result(900))[:-9]}")
    (folder / "notes.md").write_text("mine")
    (folder / "empty.json").write_text("")
    return folder


def kept(place: Path) -> list[str]:
    with open_reader(place / "llmtune.db") as reader:
        return [Path(file.path).name for file in reader.import_files()]


def test_a_folder_gets_a_report(place: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "2 runs in 2 files, 2 of which count: 2 configurations in 1 workload; 1 other file left alone"
    )
    assert "empty.json: is empty" in out
    assert "new.jsonl: it is cut off in line 2; 1 before or after it was read" in out
    assert "total tok/s: one run each, 0.6 % apart" in out
    assert "\x1b" not in out


def test_the_recorded_artefact_is_flagged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(BENCH)]) == 0
    out = capsys.readouterr().out
    assert "restart-A1-same1.json: reads like prompts answered from the prefix cache" in out
    assert "restart-A1-same0.json: reads" not in out


def test_the_same_files_again_add_nothing(place: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["import", str(folder)])
    assert "kept 2 new files" in capsys.readouterr().out
    (folder / "copy.json").write_bytes((folder / "base.json").read_bytes())
    assert main(["import", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "kept 0 new files, 3 known before" in out
    assert "1 result stood in a second file too" in out
    assert kept(place) == ["base.json", "new.jsonl"]


def test_what_is_kept_is_listed_and_reported_without_its_files(
    place: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["import", str(folder), "--format", "md"])
    before = capsys.readouterr().out.partition("\n## ")[2]
    for file in folder.iterdir():
        file.unlink()
    assert main(["import"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 4
    assert listed[1].endswith("base.json")
    assert main(["import", "--json"]) == 0
    assert [file["runs"] for file in json.loads(capsys.readouterr().out)["files"]] == [1, 1]
    assert main(["import", "--kept", "--format", "md"]) == 0
    assert capsys.readouterr().out.partition("\n## ")[2] == before
    monkeypatch.chdir(folder)
    assert main(["import", "--kept", "new.jsonl"]) == 0
    assert capsys.readouterr().out.startswith("1 run in 1 file")


def test_json_and_files(place: Path, folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["import", str(folder), "--json", "--raw"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert document["kept"] == {"new": 2, "known": 0}
    run = document["workloads"][0]["configurations"][0]["runs"][0]
    assert run["raw"]["model_id"] == "org/model"
    for form in ("text", "md", "json"):
        out = tmp_path / f"out.{form}"
        assert main(["import", str(folder), "--format", form, "--out", str(out)]) == 0
        assert capsys.readouterr().out == ""
        assert out.read_text().endswith("\n")
    assert json.loads((tmp_path / "out.json").read_text())["files"] == 2
    assert (tmp_path / "out.md").read_text().startswith("# 2 runs")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere"], "nowhere is not there: name result files, or folders of them"),
        (["results/notes.md"], "results/notes.md: is no JSON"),
        (["results", "--json", "--format", "md"], "--json and --format md contradict each other"),
        (["results", "--names", "{run}"], "--names {run}: it must hold {configuration}"),
        (["results", "--out", "no/folder/x"], "no/folder/x cannot be written"),
        (["--kept"], "nothing is kept"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str],
    line: str,
    place: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder.parent)
    assert main(["import", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert line in said.err.splitlines()[-1]
    assert len(said.err.splitlines()) == (2 if "--out" in arguments else 1)  # what was kept stays, and where it may go


def test_a_folder_of_rubbish_says_why_and_ends_with_2(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rubbish = tmp_path / "x"
    rubbish.mkdir()
    with (rubbish / "huge.json").open("wb") as file:
        file.truncate(2 * 2**30)
    (rubbish / "bin.json").write_bytes(os.urandom(300) + b"\0")
    (rubbish / os.fsdecode(b"odd\xff\x1b[31m\n.json")).write_text('{"a": NaN')
    os.mkfifo(rubbish / "pipe.json")
    (rubbish / "loop").symlink_to(rubbish)
    assert main(["import", str(rubbish)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "\x1b" not in said.err
    lines = said.err.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("llmtune: ") for line in lines)
    assert main(["import", str(rubbish), "--json"]) == 2
    assert len(json.loads(capsys.readouterr().out)["refused"]) == 4
    assert not (place / "llmtune.db").exists()


def test_nothing_imported_yet_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import"]) == 0
    assert capsys.readouterr().out.startswith("nothing was imported yet: llmtune import PATH")


def test_a_store_that_cannot_be_written_costs_no_report(
    place: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.write_text("a file in the way")
    assert main(["import", str(folder)]) == 1
    said = capsys.readouterr()
    assert "0.6 % apart" in said.out
    assert "nothing was kept: " in said.err


def test_the_readme_shows_what_it_prints(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = BENCH.parents[3]
    monkeypatch.chdir(root)
    _, _, section = (root / "README.md").read_text(encoding="utf-8").partition("## Results measured elsewhere\n")
    shown = section.partition("```text\n")[2].partition("```")[0]
    assert main(["import", str(BENCH), "--names", "restart-{configuration}{launch}-{run}"]) == 0
    assert capsys.readouterr().out.startswith(shown)
