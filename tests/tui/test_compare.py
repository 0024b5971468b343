"""Two sessions held against each other: `llmtune compare`, and marking them in Sessions."""

import contextlib
import json
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.records import SessionRecord
from tests.tui.compared_sessions import record_three
from tests.tui.test_sessions import on_list
from tests.tui.test_tune import LARGE, SMALL, app_on, said, text_of, until
from tests.tui.tune_session import record_session
from tui.cli import main
from tui.screens import base
from tui.screens.compare import CompareScreen
from tui.screens.sessions import SessionsScreen, SessionTable
from tui.sessions import session_files
from tui.widgets.choose import Choose
from tui.widgets.copy import CopyPanel


@pytest.fixture(autouse=True)
def _no_keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (base, session_files):
        monkeypatch.setattr(module, "is_running", lambda *_: False)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLMTUNE_DATA_DIR", str(tmp_path / "data"))
    record_three(tmp_path / "data")
    return tmp_path


# the command


@pytest.mark.parametrize(("a", "b"), [("1", "2"), ("before", "after")])
def test_two_sessions_by_number_and_by_name(place: Path, a: str, b: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", a, b]) == 0
    out = capsys.readouterr().out
    assert out.startswith('Session 1 "before" (A) against 2 "after" (B)\n\nOf 2 effects measured in both, 1 differs')
    assert out.index("vLLM: A 0.32.0, B 0.33.0") < out.index("vs its own default")
    assert "\x1b" not in out


def test_what_cannot_be_compared_is_refused_and_the_machines_are_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "1", "last"]) == 1
    out = capsys.readouterr().out
    assert "Not compared: the models are not the same (org/model in A, org/other in B).\n" in out
    assert "vLLM: A 0.32.0, B 0.33.0" in out


def test_json_and_files(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "1", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    words = [each["word"] for each in document["workloads"][0]["metrics"][0]["candidates"]]
    assert words[1] == "differs"
    assert main(["compare", "1", "2", "--format", "md", "--out", str(tmp_path / "r.md")]) == 0
    assert (tmp_path / "r.md").read_text().startswith("# Session 1")
    assert main(["compare", "1", "2", "--format", "html", "--out", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "<h1>Session 1" in page
    assert "<script" not in page
    assert main(["compare", "1", "2", "--format", "json", "--out", str(tmp_path / "r.json")]) == 0
    assert json.loads((tmp_path / "r.json").read_text()) == document
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["1", "1"], "session 1 was given twice: name two sessions"),
        (["1", "nine"], "There is no session 'nine'"),
        (["1", "2", "--json", "--format", "md"], "contradict each other"),
        (["1", "2", "--out", "/nowhere/at/all"], "cannot be written"),
        (["1"], "see `llmtune compare --help`"),
    ],
)
def test_bad_arguments_get_one_line(
    place: Path, words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):  # of argparse
        assert main(["compare", *words]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert line in told


# the screens


async def test_space_marks_and_c_compares_the_older_first(place: Path) -> None:
    async with app_on(place).run_test(size=SMALL) as pilot:
        screen = await on_list(pilot, "before")
        table = screen.query_one(SessionTable)
        await pilot.press("down", "space", "down", "space")
        assert table.marked == (2, 1)
        shown = text_of(pilot).splitlines()
        assert [line[0] for line in shown if line[1:].split()[:1] in (["1"], ["2"])] == ["◆", "◆"]
        assert "space mark" in shown[-1]
        assert "c compare" in shown[-1]
        assert "q quit" in shown[-1]
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "seqs 256" in text_of(pilot))
        whole = text_of(pilot)
        assert 'Session 1 "before" (A) against 2 "after" (B)' in whole
        assert "vLLM: A 0.32.0, B 0.33.0" in whole
        await pilot.press("s")
        await until(pilot, lambda: 'Session 2 "after" (A) against 1 "before" (B)' in text_of(pilot))
        await pilot.press("end")
        await until(pilot, lambda: "was changed." in text_of(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))
        assert table.marked == (2, 1)


async def test_one_mark_and_the_cursor_are_two(place: Path) -> None:
    async with app_on(place).run_test(size=LARGE) as pilot:
        await on_list(pilot, "before")
        await pilot.press("c")
        await until(pilot, lambda: "mark two sessions with space" in said(pilot))
        await pilot.press("space", "c")
        await until(pilot, lambda: "mark two sessions with space" in said(pilot))
        await pilot.press("down", "c")
        await until(pilot, lambda: "the models are not the same" in text_of(pilot))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, CopyPanel))
        assert "llmtune compare 2 3" in text_of(pilot)


async def test_a_third_mark_is_refused_and_a_deleted_session_loses_its_own(place: Path) -> None:
    async with app_on(place).run_test(size=SMALL) as pilot:
        screen = await on_list(pilot, "before")
        table = screen.query_one(SessionTable)
        await pilot.press("space", "down", "space", "down", "space")
        await until(pilot, lambda: "two sessions are marked" in said(pilot))
        assert table.marked == (3, 2)
        with open_writer(place / "data" / "llmtune.db") as writer:
            writer.delete_session(3)
        await until(pilot, lambda: table.marked == (2,))
        await pilot.press("up", "space")
        assert not table.marked


async def test_metrics_and_a_wide_terminal_show_more(place: Path) -> None:
    async with app_on(place).run_test(size=LARGE) as pilot:
        await on_list(pilot, "before")
        await pilot.press("down", "space", "down", "c")
        await until(pilot, lambda: "n 4 ✓" in text_of(pilot))
        assert "mean TTFT" not in text_of(pilot)
        await pilot.press("m")
        await until(pilot, lambda: "mean TTFT ms, which decides nothing" in text_of(pilot))


@pytest.mark.parametrize(("key", "form", "begin"), [("h", "html", "<!"), ("j", "json", "{"), ("m", "md", "# Session")])
async def test_it_is_exported(place: Path, key: str, form: str, begin: str) -> None:
    async with app_on(place).run_test(size=SMALL) as pilot:
        await on_list(pilot, "before")
        await pilot.press("down", "space", "down", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "seqs 256" in text_of(pilot))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press(key)
        await until(pilot, lambda: "written: " in said(pilot))
    target = place / "data" / "exports" / f"compare-1-2.{form}"
    assert target.read_text(encoding="utf-8").startswith(begin)
    assert target.stat().st_mode & 0o077 == 0


async def test_it_is_read_again_only_when_one_of_them_changed(place: Path) -> None:
    async with app_on(place).run_test(size=SMALL) as pilot:
        await on_list(pilot, "before")
        await pilot.press("down", "space", "down", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "seqs 256" in text_of(pilot))
        screen = pilot.app.screen
        assert isinstance(screen, CompareScreen)
        with open_reader(place / "data" / "llmtune.db") as reader:
            first = screen.refresh_from_store(reader)
            assert screen.refresh_from_store(reader) is first
        with open_writer(place / "data" / "llmtune.db") as writer:
            writer.update(SessionRecord, 2, name="renamed")
        await until(pilot, lambda: '2 "renamed" (B)' in text_of(pilot))


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_names_from_outside_stay_text(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "data").mkdir()
    with open_writer(tmp_path / "data" / "llmtune.db") as writer:
        record_session(writer)
        record_session(writer)
    async with app_on(tmp_path).run_test(size=size) as pilot:
        await on_list(pilot, "awq")
        await pilot.press("space", "down", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "[/bold]" in text_of(pilot))
        await pilot.press("end")
        await until(pilot, lambda: "was changed." in text_of(pilot))
        assert "\x1b" not in text_of(pilot)
        assert "\u202e" not in text_of(pilot)
