import os
from pathlib import Path

import pytest

from tuning.imported.finding import Found, find


def names(found: Found) -> list[str]:
    return [path.name for path in found.files]


def test_a_folder_gives_what_is_called_like_results(tmp_path: Path) -> None:
    for name in ("b.json", "a.jsonl", "c.txt", "d.png", "e.csv", "README.md"):
        (tmp_path / name).write_text("{}")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("{}")
    found = find([str(tmp_path)])
    assert names(found) == ["a.jsonl", "b.json", "c.txt"]
    assert found.left_alone == 3


def test_a_file_that_is_named_is_taken_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "results.md").write_text("{}")
    assert names(find([str(tmp_path / "results.md")])) == ["results.md"]


def test_a_loop_of_folders_ends_and_a_file_comes_once(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "one.json").write_text("{}")
    (inner / "up").symlink_to(tmp_path, target_is_directory=True)
    (inner / "again.json").symlink_to(inner / "one.json")
    (tmp_path / "self.json").symlink_to("self.json")
    found = find([str(tmp_path), str(inner), str(inner / "one.json")])
    assert len(found.files) == 1
    (refused,) = found.refused
    assert refused.path.endswith("self.json")
    assert "cannot be read" in refused.reason


def test_pipes_and_dead_links_are_told_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "dead.json").symlink_to("nowhere")
    found = find([str(tmp_path)])
    assert found.files == ()
    assert [each.reason.split(",")[0] for each in found.refused] == ["is a link to nothing", "is no file but a pipe"]


def test_a_path_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert find([str(tmp_path / "x")]).missing == (str(tmp_path / "x"),)


def test_a_folder_deeper_than_any_sweep_is_told(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(45):
        deep /= "d"
    deep.mkdir(parents=True)
    (refused,) = find([str(tmp_path)]).refused
    assert "40 folders deep" in refused.reason


def test_a_folder_that_cannot_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", closed)
    (refused,) = find([str(tmp_path)]).refused
    assert refused.reason == "cannot be entered (Permission denied)"


def test_too_many_files_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.imported.finding.MAX_FILES", 2)
    for number in range(5):
        (tmp_path / f"{number}.json").write_text("{}")
    found = find([str(tmp_path)])
    assert len(found.files) == 2
    assert len(found.refused) == 1


def test_a_link_to_the_whole_disk_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.imported.finding.MAX_LOOKED_AT", 50)
    (tmp_path / "disk").symlink_to("/usr")
    (tmp_path / "kernel").symlink_to("/proc/self")
    first, *rest = find([str(tmp_path)]).refused
    assert "50 files and folders" in first.reason
    assert rest == []
    (refused,) = find([str(tmp_path / "kernel")]).refused
    assert "the kernel's" in refused.reason
