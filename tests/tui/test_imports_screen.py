"""What was imported, opened from Sessions."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from store.database import open_reader, open_writer
from store.records import ImportFileRecord
from tests.tui.test_sessions import on_list
from tests.tui.test_tune import LARGE, SMALL, app_on, text_of, until
from tests.tuning.imported.results import BENCH, a_file, a_result
from tui.cli import main
from tui.screens.imports import ImportReportScreen, ImportsScreen, tail
from tui.screens.sessions import SessionsScreen
from tui.sessions.imports_view import import_lines, matching
from tui.widgets.copy import CopyPanel
from tuning.imported.keeping import record_of
from tuning.imported.places import folder_of


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recorded results of an H200, imported, and one file of another folder."""
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    shutil.copytree(BENCH, tmp_path / "bench")
    assert main(["import", str(tmp_path / "bench")]) == 0
    with open_writer(tmp_path / "data" / "llmtune.db") as writer:
        file = a_file("/elsewhere/[red]x\x1b[31m/a.json", a_result(0, model_id="org/[/bold]"))
        writer.insert_new_file(record_of(file, "2026-11-30T10:00:00.000Z"))
    return tmp_path


def a_record(id: int, path: str, runs: int = 1) -> ImportFileRecord:
    return ImportFileRecord(path, str(id), 10, runs, f"2026-11-30T10:00:{id:02d}.000Z", id=id)


def test_files_are_gathered_by_folder_and_a_sweep_is_one() -> None:
    sweep = "/r/20261130/SERVE--max_num_seqs=4-BENCH--rate=1"
    lines = import_lines(
        [a_record(1, "/r/one/a.json"), a_record(2, f"{sweep}/run=0.json", 2), a_record(3, f"{sweep}/run=1.json")]
    )
    assert [(line.folder, line.files) for line in lines] == [
        (None, (1, 2, 3)),
        ("/r/20261130", (2, 3)),
        ("/r/one", (1,)),
    ]
    assert lines[1].cells[:2] == ("2", "3")
    assert [line.folder for line in matching(lines, "one")] == ["/r/one"]
    assert len(import_lines([a_record(1, "/r/one/a.json")])) == 1
    assert import_lines([]) == ()


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/r/a.json", "/r"),
        ("/r/SERVE--x=1-BENCH--y=2/run=0.json", "/r"),
        ("/r/SERVE--x=1-BENCH--y=2/request_rate=4.0/run=0.json", "/r"),
        ("/r/BENCH--y=2-WL--max_concurrency=8/run=0.json", "/r"),
    ],
)
def test_the_folder_of_a_result(path: str, folder: str) -> None:
    assert folder_of(path) == folder


def test_of_a_long_folder_its_end_is_shown() -> None:
    assert tail("/a/b/c", 10) == "/a/b/c"
    assert tail("/a/long/path/模型", 9) == "…ath/模型"
    assert cell_len(tail("/a/long/path/模型", 8)) <= 8


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_a_folder_opens_as_its_report(place: Path, size: tuple[int, int]) -> None:
    async with app_on(place).run_test(size=size) as pilot:
        await on_list(pilot, "Nothing was measured here yet")
        await pilot.press("i")
        await until(pilot, lambda: isinstance(pilot.app.screen, ImportsScreen) and "all of them" in text_of(pilot))
        shown = text_of(pilot)
        assert "/elsewhere/[red]x" in shown
        assert "bench" in shown
        await pilot.press("slash", *"bench", "enter", "enter")
        await until(pilot, lambda: "14 runs in 14 files, 13 of which count" in text_of(pilot))
        assert all(cell_len(line) <= size[0] for line in text_of(pilot).splitlines())
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, CopyPanel))
        assert "llmtune import --kept" in text_of(pilot)
        await pilot.press("escape", "end")
        await until(pilot, lambda: "as vllm bench" in text_of(pilot))
        for _ in range(9):
            if "reads like prompts answered from" in text_of(pilot):
                break
            await pilot.press(*"kkkk")
        assert "reads like prompts answered from" in text_of(pilot)
        await pilot.press("escape", "escape", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))


async def test_all_folders_are_one_report_and_a_new_file_joins_it(place: Path) -> None:
    async with app_on(place).run_test(size=SMALL) as pilot:
        await on_list(pilot, "Nothing was measured here yet")
        await pilot.press("i")
        await until(pilot, lambda: isinstance(pilot.app.screen, ImportsScreen) and "all of them" in text_of(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "15 runs in 15 files" in text_of(pilot))
        screen = pilot.app.screen
        assert isinstance(screen, ImportReportScreen)
        with open_reader(place / "data" / "llmtune.db") as reader:
            first = screen.refresh_from_store(reader)
            assert screen.refresh_from_store(reader) is first
        with open_writer(place / "data" / "llmtune.db") as writer:
            later = record_of(a_file("/elsewhere/b.json", a_result(60)), "2026-11-30T11:00:00.000Z")
            writer.insert_new_file(replace(later, content_hash="another"))
        await until(pilot, lambda: "16 runs in 16 files" in text_of(pilot))


async def test_without_imports_the_way_to_them_is_said(tmp_path: Path) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_list(pilot, "Nothing was measured here yet")
        await pilot.press("i")
        await until(pilot, lambda: "`llmtune import PATH` reads results" in text_of(pilot))
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, ImportsScreen)
