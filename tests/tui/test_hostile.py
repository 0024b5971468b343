"""Text and numbers from outside, on every screen and chart: nothing crashes, nothing is lost, nothing leaves its line,
nothing reaches the terminal as code."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from store.writer import Writer
from tests.lying_exporter import LyingExporter
from tests.served_pages import ABSURD, Served
from tests.tui import run_recording
from tests.tui.conftest import NOW, fed, screen_text, server
from tests.tui.hostile import MARKUP, NUMBERS, TEXTS, put, spoilt, spoilt_samples
from tui.app import LlmtuneApp
from tui.messages import GoingOn
from tui.parting import parting_words
from tui.screens.run_charts import RunChartsScreen
from tui.widgets.status_line import StatusLine

SIZES = ((80, 24), (120, 40), (140, 45))
NO_NUMBER = re.compile(r"(?i)(?<![a-z])(nan|inf(inity)?)(?![a-z])")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

SERVER_KEYS = (("1",), ("enter",), ("escape", "y"), ("escape", "x"), ("n", "question_mark"), ("escape", "2"), ("s",))
MONITOR_KEYS = (("2",), ("e",), ("escape", "o"), ("o", "w", "question_mark"), ("escape", "y", "j"))


def page(pilot: Pilot[Any]) -> str:
    """What is shown, once it is known to be fit for a terminal."""
    app = pilot.app
    assert isinstance(app, LlmtuneApp)
    text = screen_text(app)
    lines = text.split("\n")
    assert len(lines) == app.size.height
    assert {cell_len(line) for line in lines} == {app.size.width}, "a line is wider or narrower than the screen"
    assert not CONTROL.search(text), repr(CONTROL.search(text))
    assert not list(app._notifications), "something was told that no screen tells"
    return text


async def walk(pilot: Pilot[Any], keys: Sequence[tuple[str, ...]]) -> list[str]:
    """The pages after each step."""
    pages = []
    for step in keys:
        await pilot.press(*step)
        await fed(pilot)
        pages.append(page(pilot))
    return pages


async def at_sizes(pilot: Pilot[Any]) -> list[str]:
    """The present screen in the larger sizes."""
    pages = []
    for size in SIZES[1:]:
        await pilot.resize_terminal(*size)
        await fed(pilot)
        pages.append(page(pilot))
    return pages


def is_short(text: str) -> bool:
    return text.isascii() and text.isprintable() and 0 < len(text.strip()) < 20


async def test_no_text_breaks_the_screens_of_servers(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    number = writer.insert(server(data_dir, log_path=str(data_dir / "log")))
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        for name, text in TEXTS.items():
            put(writer, data_dir, number, text)
            shown = await walk(pilot, SERVER_KEYS)
            app.screen.query_one(StatusLine).say(text, error=True)
            app.screen.query_one(StatusLine).store_error = text
            await pilot.pause()
            shown.append(page(pilot))
            if is_short(text):
                assert all(text in shown[at] for at in (0, 1, -1)), name


@pytest.mark.parametrize("name", TEXTS)
async def test_no_text_breaks_the_monitor(name: str, app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    number = writer.insert(server(data_dir, log_path=str(data_dir / "log")))
    writer.insert(server(data_dir, name="another", port=8001))
    put(writer, data_dir, number, TEXTS[name])
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        await fed(pilot)
        shown = await walk(pilot, MONITOR_KEYS)
        await pilot.press("escape")
        large = await at_sizes(pilot)
        if is_short(TEXTS[name]):
            assert TEXTS[name] in shown[0], "the model's name"
            assert TEXTS[name] in shown[1], "the event"
            assert all(shown.count(TEXTS[name]) >= 2 for shown in large), "its panels"


@pytest.mark.parametrize("name", NUMBERS)
async def test_no_number_breaks_the_monitor(name: str, app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    number = writer.insert(server(data_dir, facts={"kv_cache_tokens": NUMBERS[name][-1]}))
    writer.insert_samples(spoilt_samples(number, NUMBERS[name]))
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        await fed(pilot)
        shown = await walk(pilot, MONITOR_KEYS[:3])
        shown += await at_sizes(pilot)
        assert not [match for each in shown if (match := NO_NUMBER.search(each))]
        if name == "None":
            for label in ("KV cache", "running", "waiting"):
                (line,) = (line for line in shown[0].splitlines() if line.strip().startswith(f"{label} "))
                assert "–" in line
                assert " 0 " not in line


@pytest.mark.parametrize("number", ABSURD)
async def test_no_page_of_a_server_breaks_the_monitor(number: str, data_dir: Path) -> None:
    """Through the whole way: HTTP, parser, window, panels."""
    served = Served(model=" ".join(MARKUP), adapters=MARKUP, engines=2, drafts_per_s=3, rejected_per_s=1, absurd=number)
    async with LyingExporter(served) as exporter:
        app = LlmtuneApp(data_dir, None, urls=(exporter.url,), now=lambda: NOW)
        async with app.run_test(size=SIZES[0], notifications=True) as pilot:
            await fed(pilot, until=lambda: len(exporter.asked) > 1)
            for each in await at_sizes(pilot):
                assert not NO_NUMBER.search(each)


@pytest.mark.parametrize("name", ["all markup", "the clipboard", "wide, combining, joined", "long"])
async def test_no_text_breaks_what_was_measured(name: str, data_dir: Path) -> None:
    """The report, the list of its runs, the charts of one, and of the server's life."""
    text = TEXTS[name].replace("\0", "")
    run_recording.record_run(data_dir, words=text)
    app = LlmtuneApp(data_dir, None)
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        await fed(pilot)
        await walk(pilot, (("4",), ("enter",), ("g",), ("escape", "r"), ("end", "enter"), ("right", "y")))
        await walk(pilot, (("escape", "w"),))
        await at_sizes(pilot)
        await walk(pilot, (("escape", "escape", "escape", "3"),))


@pytest.mark.parametrize("name", ["mixed", "1e+300", "-1"])
async def test_no_number_breaks_a_run_s_charts(name: str, data_dir: Path) -> None:
    following = itertools.cycle(NUMBERS[name])
    recorded = [replace(spoilt(one, following), at=one.at) for one in run_recording.samples()]
    metrics = dict(zip(("total_tok_per_s", "p99_ttft_ms", "kv_peak_perc"), NUMBERS[name] * 3, strict=False))
    _, server_id, run_id = run_recording.record_run(data_dir, recorded, metrics=metrics)
    app = LlmtuneApp(data_dir, None)
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        await fed(pilot)
        for screen in (RunChartsScreen.of_run(run_id), RunChartsScreen.of_server(server_id)):
            await app.push_screen(screen)
            shown = await walk(pilot, (("tab",), ("tab", "right", "c")))
            shown += await at_sizes(pilot)
            assert not [match for each in shown if (match := NO_NUMBER.search(each))]
        await walk(pilot, (("escape", "escape", "4"), ("enter",), ("g",), ("escape", "r")))


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_reaches_the_terminal_after_leaving(name: str, data_dir: Path) -> None:
    assert "\x1b" not in parting_words(GoingOn((), (server(data_dir, name=TEXTS[name]),)), lambda *_: False)
