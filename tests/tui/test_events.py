"""Events: told newest first, repeated ones folded, filtered, followed; ten thousand of them at once."""

import re
from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from store.records import EventLevel, EventRecord
from store.writer import Writer
from tests.calls import calls
from tests.tui.conftest import ago, fed, screen_text, server
from tests.tui.panel_samples import HOSTILE_TEXTS, at
from tui.app import LlmtuneApp
from tui.panels.events import MOST, Told, event_rows, fold, joined, matching, said
from tui.panels.row import text_of, width_of
from tui.screens.events import FEW, EventsScreen
from tui.widgets.copy import CopyPanel
from tui.widgets.event_log import EventList, EventLog


def event(second: float, text: str, level: EventLevel = "info") -> EventRecord:
    return EventRecord(at(second), level, text)


HAPPENED = [
    event(0, "ready after 85 s"),
    event(5, "preemptions began", "warning"),
    event(6, "preemptions began", "warning"),
    event(9, "preemptions began", "warning"),
    event(20, "stopped answering", "error"),
    event(25, "preemptions began", "warning"),
]


def test_repeated_events_are_folded_and_the_newest_stands_first() -> None:
    told = fold(HAPPENED)
    assert [(one.text, one.count) for one in told] == [
        ("preemptions began", 1),
        ("stopped answering", 1),
        ("preemptions began", 3),
        ("ready after 85 s", 1),
    ]
    assert (told[2].first, told[2].last) == (at(5), at(9))
    rows = [text_of(row).rstrip() for row in event_rows(told, 70, 10)]
    assert re.fullmatch(r"..:..:25  ▲ warning  preemptions began", rows[0])
    assert re.fullmatch(r"..:..:20  ✗ error    stopped answering", rows[1])
    assert re.fullmatch(r"..:..:09  ▲ warning  preemptions began  x3 since ..:..:05", rows[2])
    assert re.fullmatch(r"..:..:00  ·          ready after 85 s", rows[3])
    assert len(event_rows(told, 70, 2)) == 2
    assert fold([]) == []


def test_events_of_two_sources_stand_in_time_order_once() -> None:
    found = joined(HAPPENED[:3], [*HAPPENED[2:], event(2, "first request")])
    assert [one.at for one in found] == [at(second) for second in (0, 2, 5, 6, 9, 20, 25)]


def test_filters_know_words_and_levels() -> None:
    told = fold(HAPPENED)
    assert len(matching(told, "")) == 4
    assert [one.text for one in matching(told, "BEGAN pre")] == ["preemptions began"] * 2
    assert len(matching(told, "", "warning")) == 3
    assert [one.level for one in matching(told, "", "error")] == ["error"]
    assert matching(told, "no such") == []


@pytest.mark.parametrize("width", [8, 40, 100])
def test_no_text_breaks_a_row(width: int) -> None:
    for text in HOSTILE_TEXTS:
        told = [*fold([event(0, text, "error")] * 12), Told("info", text, 1, "yesterday", "soon")]
        for row in event_rows(told, width, 5, day=True):
            assert width_of(row) == width
            assert text_of(row).isprintable()
        assert said(told[0]).isprintable()
    assert "x12 since" in text_of(event_rows(fold([event(0, "x" * 10_000)] * 12), 80, 1)[0])


def test_ten_thousand_events_are_folded_in_no_time() -> None:
    many = [event(second, f"preemptions began {second % 7}") for second in range(MOST)]
    told: list[Told] = []
    assert (
        calls(lambda: told.extend(fold(joined(many, many[:10])))) < 5 * MOST
    )  # each is looked at a few times, not once for each other
    assert calls(lambda: matching(told, "began 3")) < 10 * MOST
    assert len(told) == MOST


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield EventLog()
        yield EventList()


async def test_the_list_follows_the_newest_until_one_moves() -> None:
    app = Page()
    async with app.run_test(size=(60, 12)) as pilot:
        shown = app.query_one(EventList)
        shown.focus()
        happened = [event(second, f"event {second}") for second in range(30)]
        shown.fill(fold(happened))
        assert shown.chosen is not None
        assert shown.chosen.text == "event 29"
        happened.append(event(30, "event 30"))
        shown.fill(fold(happened))
        assert shown.chosen.text == "event 30"
        assert shown.place == (1, 10)
        await pilot.press("down", "j", *["pagedown"] * 2)
        chosen, place = shown.chosen, shown.place
        assert chosen.text == "event 10"
        happened.append(event(31, "event 31"))
        shown.fill(fold(happened))
        assert shown.chosen == chosen
        assert shown.place == (place[0] + 1, place[1] + 1)  # it sees the same events
        assert "event 10" in shown.text
        await pilot.press("end")
        assert shown.chosen.text == "event 0"
        await pilot.press("home", "k")
        assert shown.chosen.text == "event 31"
        shown.fill([])
        assert shown.chosen is None
        app.query_one(EventLog).draw(happened)
        assert app.query_one(EventLog).text.splitlines()[0].rstrip().endswith("event 31")


async def test_the_screen_shows_a_server_s_events_and_what_its_samples_told(
    app: LlmtuneApp, writer: Writer, data_dir: Path
) -> None:
    number = writer.insert(server(data_dir))
    other = writer.insert(server(data_dir, name="other"))
    for age, text in ((60, "ready after 85 s"), (50, "[/mnt/x] [a=b]"), (40, "preemptions began"), (39, "gone")):
        writer.insert(EventRecord(ago(age), "warning", text, server_id=other if text == "gone" else number))
    told = [EventRecord(ago(45), "error", "stopped answering")]
    async with app.run_test(size=(80, 24)) as pilot:
        screen = EventsScreen(number, "qwen [x]", lambda: told)
        app.push_screen(screen)
        await fed(pilot)
        await fed(pilot, until=lambda: "1 to 4 of 4" in screen_text(app))
        page = screen_text(app)
        rows = [row for row in page.splitlines() if re.match(r" \d\d-\d\d \d\d:", row)]
        assert [row[15:].split(None, 2)[-1].strip() for row in rows[:2]] == ["preemptions began", "stopped answering"]
        assert "[/mnt/x] [a=b]" in page
        assert "gone" not in page
        assert "events of qwen [x]" in page
        writer.insert(EventRecord(ago(1), "info", "first request", server_id=number))
        await fed(pilot, until=lambda: "first request" in screen_text(app))
        await pilot.press("l", "l")
        await pilot.pause()
        assert "stopped answering" in screen_text(app)
        assert "preemptions began" not in screen_text(app)
        await pilot.press("escape", "slash", *"ready", "enter")
        await pilot.pause()
        assert "1 to 1 of 1" in screen_text(app)
        await pilot.press("y")
        await pilot.pause()
        assert isinstance(app.screen, CopyPanel)
        assert app.clipboard.endswith("warning  ready after 85 s")
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert "of 5" in screen_text(app)
        await pilot.press("e")
        await pilot.pause()
        assert app.screen is not screen


@pytest.mark.parametrize("size", [(80, 24), (140, 45), (30, 8)])
async def test_no_text_breaks_the_screen(
    app: LlmtuneApp, writer: Writer, data_dir: Path, size: tuple[int, int]
) -> None:
    number = writer.insert(server(data_dir))
    for text in HOSTILE_TEXTS:
        writer.insert(EventRecord(ago(5), "error", text.replace("\0", ""), server_id=number))
    async with app.run_test(size=size) as pilot:
        await fed(pilot)
        app.push_screen(EventsScreen(number, HOSTILE_TEXTS[0] + HOSTILE_TEXTS[3]))
        await fed(pilot, until=lambda: "all;" in screen_text(app) or size[0] == 30)
        for _ in HOSTILE_TEXTS:
            page = screen_text(app)
            assert len(page.splitlines()) == size[1]
            assert all(line.isprintable() for line in page.splitlines())
            await pilot.press("down")
            await pilot.pause()
        if size[0] >= 80:
            assert "[/mnt/x]" in page
            assert "[bold red]x[/]" in page


async def test_ten_thousand_events_open_at_once(
    app: LlmtuneApp, writer: Writer, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a screen has room for is shown before the rest is read."""
    number = writer.insert(server(data_dir))
    with writer.transaction():
        for second in range(10_000):
            writer.insert(EventRecord(ago(10_000 - second), "info", f"event {second} " + "x" * 200, server_id=number))
    filled: list[int] = []
    fill = EventList.fill

    def counted(shown: EventList, told: list[Told]) -> None:
        filled.append(len(told))
        fill(shown, told)

    monkeypatch.setattr(EventList, "fill", counted)
    async with app.run_test(size=(140, 45)) as pilot:
        await fed(pilot)
        screen = EventsScreen(number, "busy")
        app.push_screen(screen)
        await fed(pilot, until=lambda: screen.is_up and screen.query_one(EventList).count == 10_000)
        assert "1 to 39 of 10,000" in screen_text(app)
    assert (filled[0], filled[-1]) == (FEW, 10_000)
