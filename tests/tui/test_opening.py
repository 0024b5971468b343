"""What a screen that is opened costs the ones that stand: Textual is to read its rules, not all rules anew."""

import gc
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.tui.conftest import fed, screen_text
from tui.app import MODE_LABELS, LlmtuneApp
from tui.screens.base import LlmtuneScreen, room_classes
from tui.screens.events import EventsScreen
from tui.widgets.latency_table import LatencyTable


async def test_no_screen_has_all_css_applied_anew(app: LlmtuneApp, filled: Path) -> None:
    """Held by LlmtuneScreen.__init__, which sets a private attribute of Textual's: where that is renamed or means
    something else, this fails."""
    async with app.run_test(size=(120, 40)) as pilot:
        await fed(pilot)
        with patch.object(app, "refresh_css", wraps=app.refresh_css) as refreshed:
            for key in (2, 3, 4, 1):
                await pilot.press(str(key))
                await fed(pilot)
            assert app.current_mode == next(iter(MODE_LABELS))
            assert refreshed.call_count == 0


async def test_a_screen_that_is_opened_later_has_its_own_rules(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await fed(pilot)
        await pilot.press("4")
        await fed(pilot)
        assert not app.screen.query_one("#filter").display  # FilteringScreen.DEFAULT_CSS


async def test_no_screen_has_its_rules_applied_twice(app: LlmtuneApp, filled: Path) -> None:
    """Each widget has them once, as it is mounted: not again by the first resize, nor by coming back."""
    async with app.run_test(size=(140, 45)) as pilot:
        await fed(pilot)
        with patch.object(app, "update_styles", wraps=app.update_styles) as applied:
            for key in (2, 4, 5, 1, 2):
                await pilot.press(str(key))
                await fed(pilot)
                assert app.screen.classes >= {"-wide", "-tall"}
            assert not [call for call in applied.call_args_list if isinstance(call.args[0], LlmtuneScreen)]


async def test_what_the_app_became_meanwhile_is_applied_as_one_comes_back(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test(size=(140, 45)) as pilot:
        await fed(pilot)
        await pilot.press("2")
        await fed(pilot)
        seen = []
        for theme in ("textual-dark", "textual-light", "ansi-dark"):
            await pilot.press("1")
            app.theme = theme
            await pilot.pause()
            await pilot.press("2")
            await fed(pilot)
            seen.append(app.screen.query_one(LatencyTable).render_line(0))
        assert len({str(strip.render(app.console)) for strip in seen}) == 3
        with patch.object(app, "update_styles", wraps=app.update_styles) as applied:
            await pilot.press("1")
            app.app_focus = False
            await pilot.pause()
            applied.reset_mock()
            app.action_go("monitor")  # a key would say that the terminal has the focus
            await fed(pilot)
            assert app.screen in [call.args[0] for call in applied.call_args_list]


async def test_another_size_meanwhile_is_taken_as_one_comes_back(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test(size=(140, 45)) as pilot:
        await fed(pilot)
        await pilot.press("2", "1")
        await pilot.resize_terminal(80, 24)
        await pilot.press("2")
        await fed(pilot)
        assert app.screen.classes >= {"-narrow", "-short"}
        assert not app.screen.classes & {"-wide", "-tall"}


@pytest.mark.parametrize("size", [(1, 1), (80, 24), (119, 35), (120, 36), (200, 60)])
async def test_the_classes_of_a_size_are_those_that_textual_gives(app: LlmtuneApp, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await pilot.press("2")
        await pilot.pause()
        across, down = app.HORIZONTAL_BREAKPOINTS, app.VERTICAL_BREAKPOINTS
        screen = app.screen
        textual = screen._get_breakpoint_classes(size[0], across) | screen._get_breakpoint_classes(size[1], down)
        assert room_classes(app.size) == textual


async def test_a_new_screen_is_read_for_once(app: LlmtuneApp, filled: Path) -> None:
    """Its first reading is a full one; Textual says twice that it is shown."""
    async with app.run_test(size=(140, 45)) as pilot:
        await fed(pilot)
        with patch.object(app, "ask", wraps=app.ask) as asked:
            await pilot.press("2")
            await pilot.pause()
            assert asked.call_count == 1
        await fed(pilot)
        assert "running" in screen_text(app)


async def test_no_garbage_is_looked_for_while_a_screen_opens(
    app: LlmtuneApp, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "load_screens", lambda: None)  # which freezes what it loaded
    monkeypatch.setattr("tui.collector.OPENED_S", 60.0)
    async with app.run_test(size=(140, 45)) as pilot:
        await fed(pilot)
        assert not gc.isenabled()
        app.collector.screen_stands()
        assert gc.isenabled()
        stands = gc.get_freeze_count()
        await pilot.press("2")
        await fed(pilot)
        assert not gc.isenabled()
        app.collector.screen_stands()
        assert gc.get_freeze_count() > stands  # it is no garbage, and looked through no more
        stands = gc.get_freeze_count()
        await pilot.press("e")
        await fed(pilot, until=lambda: isinstance(app.screen, EventsScreen))
        assert not gc.isenabled()
        app.collector.screen_stands()
        assert gc.isenabled()
        assert gc.get_freeze_count() <= stands  # what lies on top is taken down again
        monkeypatch.setattr("tui.collector.OPENED_S", 0.01)
        await pilot.press("escape", "4")
        await fed(pilot, until=gc.isenabled)  # by itself, in time
        monkeypatch.setattr("tui.collector.OPENED_S", 60.0)
        app.collector.hold()
        assert not gc.isenabled()
    assert gc.isenabled()  # also where one leaves meanwhile
    assert gc.get_freeze_count() == 0
