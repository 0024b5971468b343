"""Sessions, its report and its plots, driven by keys at 80x24 and 140x45."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from store.database import open_reader, open_writer
from store.errors import NotFound
from store.reader import Reader
from store.records import SessionRecord
from tests.tui.test_tune import LARGE, SMALL, app_on, said, text_of, until
from tests.tui.tune_session import HOSTILE, record_session, session_in
from tui.screens import base
from tui.screens.plot import PlotScreen
from tui.screens.session_report import SessionReportScreen
from tui.screens.sessions import SessionsScreen, SessionTable
from tui.sessions import session_files
from tui.sessions.sessions_view import MOST_JUDGED, SessionsSource, matching, session_line
from tui.widgets.choose import Choose
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel


@pytest.fixture(autouse=True)
def _no_keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (base, session_files):
        monkeypatch.setattr(module, "is_running", lambda *_: False)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three sessions: a hostile name, a plain one, one that was left in the middle."""
    (tmp_path / "data").mkdir()
    with open_writer(tmp_path / "data" / "llmtune.db") as writer:
        record_session(writer)
        record_session(writer, name="plain")
        record_session(writer, name="half", finished=False)
    return tmp_path


async def on_list(pilot: Pilot[Any], words: str) -> SessionsScreen:
    await pilot.press("4")
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen) and words in text_of(pilot))
    await until(pilot, lambda: "? help" in text_of(pilot))
    assert isinstance(pilot.app.screen, SessionsScreen)
    return pilot.app.screen


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_list_shows_the_newest_first_and_says_what_came_of_it(three: Path, size: tuple[int, int]) -> None:
    async with app_on(three).run_test(size=size) as pilot:
        await on_list(pilot, "half")
        await until(pilot, lambda: "the next is the first that decides" in text_of(pilot))  # of the chosen one
        await until(pilot, lambda: "No candidate is shown to beat" in text_of(pilot))
        shown = text_of(pilot)
        assert shown.index("half") < shown.index("plain") < shown.index("awq [/bold]")
        for words in ("! interrupted", "✓ done", "No candidate is shown to beat", "1 launch failed"):
            assert words in shown, words
        assert ("26/40" in shown) == (size == LARGE)
        assert ("did not start: out of memory" in shown) == (size == LARGE)  # the chosen session, where there is room
        assert "\x1b" not in shown


async def test_nothing_yet_is_said(tmp_path: Path) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_list(pilot, "Nothing was measured here yet")
        await pilot.press("enter", "g", "e", "d", "y")
        assert isinstance(pilot.app.screen, SessionsScreen)


async def test_the_filter_takes_words_and_esc_shows_all(three: Path) -> None:
    async with app_on(three).run_test(size=SMALL) as pilot:
        screen = await on_list(pilot, "half")
        await pilot.press("slash", *"[/b", "enter")
        await until(pilot, lambda: screen.query_one(SessionTable).row_count == 1)
        assert "awq [/bold]" in text_of(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: screen.query_one(SessionTable).row_count == 3)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_report_has_tables_environment_and_events(three: Path, size: tuple[int, int]) -> None:
    async with app_on(three).run_test(size=size) as pilot:
        await on_list(pilot, "half")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionReportScreen) and "begun" in text_of(pilot))
        shown = text_of(pilot)
        for words in (
            '"plain"  ✓ done',
            "No candidate is shown to beat the default within the limits: 1 worse, 1",
            "vs default",
            "baseline",
            "⊘ infeasible",
            "default: p99 TTFT ms ≤ 500 in chat: broken",
            "noise of total tok/s: run 0.",
            "48 of 48 runs, spent 45 min = $0.33",
            "[16384, 0.98] did not start: out of memory",
            "rejected runs (the events say why)",
        ):
            assert words in shown, words
        below = pilot.app.screen.query_one("#details Static", Static)
        await until(pilot, lambda: "Cost and energy" in below.render().plain)
        whole = below.render().plain
        for words in (
            "unequal noise: 8192",
            "cost for a million tokens, in and out",
            "Rejected runs",
            "3 of 200 requests failed",
            "Noise of the deciding metrics",
            "How the verdict is reached",
            "What the numbers mean",
            "gpu.name: H200 [/x]",
            "left out before any launch",
        ):
            assert words in whole, words
        await pilot.press("w")
        await until(pilot, lambda: "pre[/x]fix (2 of 2" in text_of(pilot))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, CopyPanel))
        await pilot.press("escape", "tab", "end")
        await until(pilot, lambda: "block 1 of 2 begins" in text_of(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))


async def test_delete_asks_once(three: Path) -> None:
    async with app_on(three).run_test(size=SMALL) as pilot:
        screen = await on_list(pilot, "half")
        await pilot.press("down", "d")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        assert '"plain"' in text_of(pilot)
        await pilot.press("n")
        await until(pilot, lambda: pilot.app.screen is screen)
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: screen.query_one(SessionTable).row_count == 2)
    with open_reader(three / "data" / "llmtune.db") as reader, pytest.raises(NotFound):
        reader.session(2)


async def test_a_running_session_is_not_deleted(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (base, session_files):
        monkeypatch.setattr(module, "is_running", lambda *_: True)
    async with app_on(three).run_test(size=SMALL) as pilot:
        await on_list(pilot, "half")
        await pilot.press("d")
        await until(pilot, lambda: "stop it first" in said(pilot))


@pytest.mark.parametrize(
    ("key", "form", "begin"), [("c", "csv", "session,"), ("j", "json", "{"), ("m", "md", "# Session 2")]
)
async def test_export_writes_a_file_and_shows_its_path(three: Path, key: str, form: str, begin: str) -> None:
    async with app_on(three).run_test(size=SMALL) as pilot:
        await on_list(pilot, "half")
        await pilot.press("down", "e")
        await until(pilot, lambda: isinstance(pilot.app.screen, Choose))
        await pilot.press(key)
        await until(pilot, lambda: "written: " in said(pilot))
        target = three / "data" / "exports" / f"session-2.{form}"
        assert str(target) in said(pilot)
    text = target.read_text(encoding="utf-8")
    assert text.startswith(begin)
    assert form != "json" or json.loads(text)["schema"] == 1


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_plots_by_keys(three: Path, size: tuple[int, int]) -> None:
    async with app_on(three).run_test(size=size) as pilot:
        await on_list(pilot, "half")
        await pilot.press("g")
        await until(pilot, lambda: isinstance(pilot.app.screen, PlotScreen) and "▲" in text_of(pilot))
        assert "total tok/s against max-num-batched-tokens" in text_of(pilot)
        assert "16384" in text_of(pilot)
        await pilot.press("p")
        await until(pilot, lambda: "against gpu-memory-utilization" in text_of(pilot))
        await pilot.press("p")
        await until(pilot, lambda: "against candidate" in text_of(pilot))
        await pilot.press("m")
        await until(pilot, lambda: "output tok/s against" in text_of(pilot))
        await pilot.press("w")
        await until(pilot, lambda: "pre[/x]fix: mean" in text_of(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen))


async def test_another_program_deletes_the_session_of_an_open_report(three: Path) -> None:
    async with app_on(three).run_test(size=SMALL) as pilot:
        await on_list(pilot, "half")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionReportScreen) and "begun" in text_of(pilot))
        with open_writer(three / "data" / "llmtune.db") as writer:
            writer.delete_session(2)
        await until(pilot, lambda: "no session 2" in text_of(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionsScreen) and "plain" not in text_of(pilot))


async def test_a_thousand_sessions_open_without_loading_their_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = session_in(tmp_path / "data", name="first")
    with open_reader(tmp_path / "data" / "llmtune.db") as reader:
        model = reader.session(number)
    with open_writer(tmp_path / "data" / "llmtune.db") as writer, writer.transaction():
        for at in range(999):
            writer.insert(replace(model, id=None, name=f"sweep {at}"))
    loaded: list[int] = []
    read_runs = Reader.runs

    def counted(self: Reader, session_id: int, *rest: Any, **named: Any) -> Any:
        loaded.append(session_id)
        return read_runs(self, session_id, *rest, **named)

    monkeypatch.setattr(Reader, "runs", counted)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_list(pilot, "sweep 998")
        assert screen.query_one(SessionTable).row_count == 1000
        await pilot.press("slash")
        screen.query_one("#filter", Input).value = "1000"
        await until(pilot, lambda: screen.query_one(SessionTable).row_count == 1)
    assert len(set(loaded)) <= 3 + MOST_JUDGED  # those under the cursor, and a screenful for their verdicts


def test_the_source_reads_again_only_after_a_commit(tmp_path: Path) -> None:
    session_in(tmp_path)
    source = SessionsSource(lambda _: False)
    with open_reader(tmp_path / "llmtune.db") as reader, open_writer(tmp_path / "llmtune.db") as writer:
        first = source.read(reader, 1)
        assert first.lines[0].cells[-1] == "1 launch failed, 1 run rejected"
        judged = source.read(reader, 1)  # the first look need not wait for verdicts
        assert judged.lines[0].cells[-1].startswith("No candidate is shown to beat the default")
        assert source.read(reader, 1) is judged
        writer.update(SessionRecord, 1, message="stopped by hand\x1b[31m")
        assert "stopped by hand" in source.read(reader, 1).said
        assert source.read(reader, 1).said.isprintable()
        writer.update(SessionRecord, 1, raw={"sentence": "kept [/x]\x1b[2J with it"})
        assert source.read(reader, 1).lines[0].cells[-1] == "kept [/x] with it"


def test_a_line_of_the_list_is_clean_and_found_by_its_words(tmp_path: Path) -> None:
    session_in(tmp_path)
    with open_reader(tmp_path / "llmtune.db") as reader:
        counts = reader.progress()[1]
        line = session_line(reader.session(1), counts, lambda _: True)
        again = replace(counts, runs={**counts.runs, "rejected": counts.runs.get("rejected", 0) + 9})
        assert session_line(reader.session(1), again, lambda _: True).cells[4] == "40/40"  # many were made once more
    assert all(cell.isprintable() for cell in line.cells)
    assert line.cells[4] == "33/40"
    assert matching((line,), "AWQ done") == (line,)
    assert matching((line,), "awq running") == ()
    assert HOSTILE not in line.name
