"""What a screen that is opened costs the ones that stand: Textual is to read its rules, not all rules anew."""

from pathlib import Path
from unittest.mock import patch

from tests.tui.conftest import fed
from tui.app import MODE_LABELS, LlmtuneApp


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
