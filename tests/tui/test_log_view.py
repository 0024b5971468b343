"""The tail of a log on a screen: its last line stays in sight until a person scrolls up."""

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tui.servers.log_tail import LogLines
from tui.widgets.log_view import LogView

SIZE = (40, 10)


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield LogView()


def seen(app: App[None]) -> list[str]:
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips(app.size)]


async def settled(pilot: Pilot[None]) -> None:
    """Until what was asked for after the next refresh was done, and drawn."""
    for _ in range(8):
        await pilot.pause()


def numbered(count: int, width: int = 5) -> LogLines:
    lines = tuple(f" line {at} ".ljust(width, "x") for at in range(count))
    return LogLines("log", lines, count)


async def test_the_last_line_is_seen_though_a_scrollbar_comes_below_it() -> None:
    app = Page()
    async with app.run_test(size=SIZE) as pilot:
        log = app.query_one(LogView)
        log.follow(numbered(30))
        await settled(pilot)
        assert any("line 29" in line for line in seen(app))
        log.follow(LogLines("log", (*numbered(30).lines, " line 30 " + "x" * 100), 31))
        await settled(pilot)
        assert log.show_horizontal_scrollbar
        assert any("line 30" in line for line in seen(app))
        await pilot.resize_terminal(40, 6)
        await settled(pilot)
        assert any("line 30" in line for line in seen(app))


async def test_one_who_scrolled_up_stays_there() -> None:
    app = Page()
    async with app.run_test(size=SIZE) as pilot:
        log = app.query_one(LogView)
        log.follow(numbered(30))
        await settled(pilot)
        log.scroll_to(y=3, animate=False, immediate=True)
        await settled(pilot)
        log.follow(LogLines("log", (*numbered(30).lines, " line 30 " + "x" * 100), 31))
        await settled(pilot)
        assert log.show_horizontal_scrollbar
        assert "line 3" in seen(app)[0]
        assert not any("line 30" in line for line in seen(app))
