"""The app itself: number keys, help, palette, leaving, what it says of a store that it cannot read, its speed."""

import os
import signal
import sqlite3
import stat
from dataclasses import asdict
from pathlib import Path

import pytest
from textual.pilot import Pilot

from engine.records import EngineError
from store.location import database_file
from store.records import SessionRecord
from store.writer import Writer
from tests.store.examples import an_evaluation_job
from tests.tui.conftest import NOW, ago, fed, screen_text, server
from tests.tui.recorded import plan
from tui.app import MODE_LABELS, LlmtuneApp
from tui.messages import GoingOn
from tui.monitor.monitor_reading import MonitorSnapshot
from tui.parting import parting_words
from tui.screens.base import LlmtuneScreen
from tui.screens.help import HelpScreen
from tui.screens.monitor import MonitorScreen
from tui.screens.servers import ServersScreen
from tui.widgets.key_line import KeyLine
from tui.widgets.monitor_panel import MonitorPanel
from tui.widgets.status_line import StatusLine

SIZES = ((80, 24), (140, 45))


def session(**changes: object) -> SessionRecord:
    fields = {"name": "awq knobs", "state": "running", "plan_toml": "", "plan": asdict(plan()), "seed": 1}
    fields["candidates"] = [{"index": 0, "label": "default", "settings": {}}]
    return SessionRecord(**{**fields, "created_at": ago(60), **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("size", SIZES)
async def test_number_keys_show_their_screens(app: LlmtuneApp, filled: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await fed(pilot)
        for key, mode in enumerate(MODE_LABELS, start=1):
            await pilot.press(str(key))
            await pilot.pause()
            assert app.current_mode == mode
            assert isinstance(app.screen, LlmtuneScreen)
            await fed(pilot)
            header = screen_text(app).splitlines()[0]
            assert all(f"{at} {label}" in header for at, label in enumerate(MODE_LABELS.values(), start=1))
            assert NOW.strftime("%H:%M:%S") in header


@pytest.mark.parametrize("screen", ["1", "2"])
async def test_help_explains_every_number_and_key_of_its_screen(app: LlmtuneApp, filled: Path, screen: str) -> None:
    async with app.run_test(size=(80, 160)) as pilot:
        await pilot.press(screen)
        await fed(pilot)
        main = app.screen
        assert isinstance(main, LlmtuneScreen)
        assert main.LEGEND
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        shown = screen_text(app)
        for number in main.LEGEND:
            assert number.name in shown
        assert "palette" in shown
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is main


async def test_palette_offers_what_is_possible_now(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Start a server", "Stop the server", "Go to Monitor", "Leave llmtune"} <= titles
        assert "Go to Servers" not in titles
        await pilot.press("ctrl+p")
        await pilot.pause()
        await pilot.press(*"monitor the", "enter")
        await fed(pilot)
        assert isinstance(app.screen, MonitorScreen)


def test_parting_words_name_what_goes_on_and_the_way_back() -> None:
    going_on = GoingOn((session(id=14), session(id=15, state="paused"), session(id=16)), ())
    assert parting_words(going_on, lambda kind, number: (kind, number) == ("session", 14)).splitlines() == [
        "session 14 goes on: llmtune attach 14",
        "session 15 is paused: llmtune resume 15",
        "session 16 stands still, its keeper is gone: llmtune resume 16",
    ]
    measured = GoingOn(evaluations=(an_evaluation_job(id=3), an_evaluation_job(id=4, name="b\x07@2")))
    assert parting_words(measured, lambda kind, number: (kind, number) == ("evaluation", 3)).splitlines() == [
        "evaluation 3 of alpaca@1 goes on: llmtune lora attach eval:3",
        "evaluation 4 of b@2 has lost its keeper: llmtune lora resume eval:4",
    ]


async def test_q_leaves_and_says_what_keeps_running(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    number = writer.insert(session())
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0
    said = app.parting
    assert f"session {number} stands still, its keeper is gone: llmtune resume {number}" in said
    assert "server qwen-7b goes on at http://127.0.0.1:8000: llmtune server stop qwen-7b" in said
    assert "qwen-long" not in said  # it failed


async def test_a_running_session_is_what_one_comes_back_to(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    writer.insert(session())
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.pause()
        assert app.current_mode == "tune"
        await pilot.press("1")
        await fed(pilot)
        assert app.current_mode == "servers"  # and it does not drag one back


async def test_the_screen_follows_commits_of_others(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        version = app.store_version
        writer.insert(server(filled, name="late-one", port=8009))
        await fed(pilot, until=lambda: app.store_version != version)
        assert "late-one" in screen_text(app)


async def test_signals_end_it_cleanly(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        os.kill(os.getpid(), signal.SIGHUP)
        for _ in range(50):
            await pilot.pause(0.02)
            if not app.is_running:
                break
    assert app.return_code == 128 + signal.SIGHUP
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def _store_line(pilot: Pilot[object]) -> str:
    app = pilot.app
    assert isinstance(app, LlmtuneApp)
    line = app.screen.query_one(StatusLine)
    await fed(pilot, until=lambda: line.store_error is not None)
    return line.store_error or ""


async def test_an_empty_folder_is_a_fresh_start(app: LlmtuneApp) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        assert "No server yet" in screen_text(app)
        for key in ("x", "r", "y", "m", "enter", "l", "2", "s", "w", "space", "y"):
            await pilot.press(key)
        await fed(pilot)
        assert "no server runs" in screen_text(app)


async def test_a_read_only_database_is_shown(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    writer.close()
    for path in (*filled.iterdir(), filled):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        async with app.run_test() as pilot:
            await fed(pilot)
            await pilot.press("1")
            shown = screen_text(app)
            assert "qwen-7b" in shown
    finally:
        filled.chmod(0o755)


async def test_a_damaged_database_is_one_line(app: LlmtuneApp, data_dir: Path) -> None:
    data_dir.mkdir()
    (database_file(data_dir)).write_bytes(b"no database at all, but long enough to look like one " * 100)
    async with app.run_test() as pilot:
        assert "is damaged" in await _store_line(pilot)
        await fed(pilot, lambda: "✗" in screen_text(app))
        await pilot.press("2", "q")
    assert app.return_code == 0


async def test_a_newer_database_is_one_line_and_untouched(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    writer.close()
    path = database_file(filled)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) SELECT migration_set, "
                           "'9999_from_the_future', applied_at FROM _sqlite_migrations LIMIT 1")  # fmt: skip
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    before = path.read_bytes()
    async with app.run_test() as pilot:
        assert "newer" in await _store_line(pilot)
    assert path.read_bytes() == before


async def test_a_runtime_folder_of_someone_else_is_one_line(
    app: LlmtuneApp, writer: Writer, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> bool:
        raise EngineError("/tmp/llmtune-0 must be a folder of yours")

    monkeypatch.setattr("tui.monitor.monitor_reading.is_running", refused)
    writer.insert(server(data_dir))
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("2")
        assert "must be a folder of yours" in await _store_line(pilot)


async def test_servers_screen_is_first(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        assert isinstance(app.screen, ServersScreen)


async def test_the_keys_of_every_screen_fit_and_can_be_clicked(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    writer.insert(session(state="done"))
    async with app.run_test() as pilot:
        for key in ("1", "2", "3", "4"):
            await pilot.press(key)
            await fed(pilot)
            await pilot.press("escape")
            await fed(pilot, until=lambda: screen_text(app).splitlines()[-1].split()[-4:] == ["?", "help", "q", "quit"])
        await pilot.press("1")
        await fed(pilot)
        keys = screen_text(app).splitlines()[-1]
        assert "x stop" in keys
        await pilot.press("down", "down")
        await fed(pilot, until=lambda: "x stop" not in screen_text(app).splitlines()[-1])  # that one failed long ago
        await pilot.click(KeyLine, offset=(screen_text(app).splitlines()[-1].index("? help"), 0))
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)


async def test_what_comes_after_a_screen_is_gone_is_dropped(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("2")
        await fed(pilot)
        screen = app.screen
        assert isinstance(screen, MonitorScreen)
        said: list[str] = []
        screen.later(said.append, "while it stands")
        await pilot.pause()
        await screen.query_one(MonitorPanel).remove_children()  # as far as leaving had come in the flake
        app.exit()
        screen.later(screen.redraw)
        screen.show(MonitorSnapshot())
        screen.later(said.append, "too late")
    screen.later(screen.redraw)
    assert said == ["while it stands"]
