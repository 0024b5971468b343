"""The Monitor in terminals of every size: what must be seen at once, what goes first, nothing that breaks."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from store.records import EventRecord, ServerRecord
from store.writer import Writer
from tests.tui.conftest import ago, busy_samples, fed, screen_text, server
from tui.app import LlmtuneApp
from tui.widgets.lines import Lines
from tui.widgets.monitor_details import MonitorDetails
from tui.widgets.monitor_panel import MonitorPanel

AT_ONCE = ("● ready", "KV cache", "running", "waiting", "output", "TTFT", "ITL", "end to end", "queue", "GPU 0", "W  ")


async def opened(app: LlmtuneApp, pilot: Pilot[object], words: tuple[str, ...] = ()) -> None:
    """The Monitor, once it shows all of `words`."""
    await pilot.press("2")
    await fed(pilot)
    await fed(pilot, until=lambda: all(word in screen_text(app) for word in words))
    await fed(pilot)


def foretold(app: LlmtuneApp) -> bool:
    """Whether each block was drawn for the room that the layout then gave it."""
    blocks = [one for one in app.screen.query_one(MonitorPanel).query(Lines) if one.display]
    return bool(blocks) and all(one.room == one.content_size for one in blocks)


async def test_80x24_shows_all_of_it_at_once(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot, AT_ONCE)
        shown = screen_text(app)
        for word in (*AT_ONCE, "bound", "preemptions began", "ready after 85 s", "every 1 s", "last 60 s", "▶ live"):
            assert word in shown, word
        panel = app.screen.query_one(MonitorPanel)
        assert panel.max_scroll_y == 0
        assert not panel.query_one(MonitorDetails).display


@pytest.mark.parametrize(
    ("size", "wanted"), [((120, 24), True), ((140, 45), True), ((80, 45), True), ((80, 30), False)]
)
async def test_more_room_has_more_panels(app: LlmtuneApp, filled: Path, size: tuple[int, int], wanted: bool) -> None:
    async with app.run_test(size=size) as pilot:
        await opened(app, pilot, AT_ONCE)
        assert foretold(app)
        assert app.screen.query_one(MonitorPanel).query_one(MonitorDetails).display == wanted
        assert ("── scheduler" in screen_text(app)) == wanted
        assert all(word in screen_text(app) for word in AT_ONCE)
        if size[1] >= 36:
            assert "TPOT" in screen_text(app)
            assert "▸ ● ready" in screen_text(app)  # the list of all servers above the shown one


async def test_a_terminal_may_be_resized_at_any_time(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test(size=(140, 45)) as pilot:
        await opened(app, pilot, AT_ONCE)
        for width, height in ((80, 24), (20, 5), (40, 12), (10, 3), (1, 1), (200, 70), (60, 16), (120, 36), (80, 24)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            for key in ("w", "o", "g", "o"):
                await pilot.press(key)
            lines = screen_text(app).splitlines()
            assert len(lines) == height
            await pilot.pause()
            assert foretold(app) or width < 3, (width, height)
        await fed(pilot)
        assert all(word in screen_text(app) for word in AT_ONCE)


async def test_a_small_terminal_loses_what_matters_least(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test(size=(20, 5)) as pilot:
        await opened(app, pilot)
        rows = screen_text(app).splitlines()
        assert rows[1].startswith(" ● ready")
        assert rows[2].split() == ["KV", "cache", "71.4", "%"]
        assert rows[3].split() == ["running", "184"]


async def test_a_long_list_keeps_the_shown_server_in_sight(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    for number in range(40):
        writer.insert(server(data_dir, name=f"n{number}", served_name=f"n{number}", port=8000 + number, pid=number))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot)
        await pilot.press("o")
        await pilot.pause()
        for _ in range(30):
            await pilot.press("down")
        await fed(pilot, until=lambda: any("▸" in row and " n30 " in row for row in screen_text(app).splitlines()))
        assert "server 31 of 40" in screen_text(app)


async def test_its_events_are_a_screen_and_its_life_is_charts(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    writer.insert(EventRecord(at=ago(5), level="error", text="stopping [/x]", server_id=1))
    async with app.run_test() as pilot:
        await opened(app, pilot)
        await pilot.press("e")
        await fed(pilot, until=lambda: "events of qwen2.5-7b" in screen_text(app))
        assert "stopping [/x]" in screen_text(app)
        await pilot.press("escape")
        await fed(pilot, until=lambda: "▶ live" in screen_text(app))
        await pilot.press("h")
        await fed(pilot, until=lambda: "▶ live" not in screen_text(app))
        await pilot.press("escape")
        await fed(pilot, until=lambda: "▶ live" in screen_text(app))


async def test_without_any_server_it_says_how_to_get_one(app: LlmtuneApp, writer: Writer) -> None:
    async with app.run_test() as pilot:
        await opened(app, pilot)
        assert "○ no server runs" in screen_text(app)
        assert "llmtune monitor --url URL" in screen_text(app)
        await pilot.press("s", "w", "space", "g", "o", "e", "h", "y", "plus", "minus")
        await fed(pilot)
        assert "no server is shown" in screen_text(app)


async def test_one_that_starts_while_nothing_runs_is_shown(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    async with app.run_test() as pilot:
        await opened(app, pilot)
        number = writer.insert(server(data_dir, state="starting", ready_at=None, started_at=ago(3)))
        await fed(pilot, until=lambda: "◐ starting" in screen_text(app))
        writer.update(ServerRecord, number, state="ready", ready_at=ago(1))
        writer.insert_samples(busy_samples(number))
        await fed(pilot, until=lambda: "● ready" in screen_text(app) and "184" in screen_text(app))
