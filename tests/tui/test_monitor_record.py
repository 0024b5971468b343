"""`llmtune monitor --record`: what the screen saw of a foreign server is in the store, and can be opened there."""

import asyncio
from pathlib import Path

import pytest

from engine.samples.foreign_record import ForeignRecords
from store.database import open_reader, open_writer
from store.errors import StoreFull
from tests.lying_exporter import LyingExporter
from tests.served_pages import Served
from tests.tui.conftest import screen_text
from tests.tui.test_monitor_foreign import answering, until
from tui.app import LlmtuneApp


async def test_what_was_seen_is_kept_and_opens_as_a_server_that_has_ended(data_dir: Path) -> None:
    path = data_dir / "llmtune.db"
    async with LyingExporter(Served(model="/models/[x]")) as exporter:
        with open_writer(path) as writer:
            app = LlmtuneApp(data_dir, None, urls=(exporter.url,), records=ForeignRecords(writer))
            async with app.run_test() as pilot:
                await answering(pilot, app)
                await asyncio.sleep(0.6)
                await pilot.press("1")
                await until(app, lambda: "[x]" in screen_text(app) and "stopped" in screen_text(app), "its row")
                for key in ("enter", "escape", "r", "escape", "x"):  # nothing that is done to it breaks anything
                    await pilot.press(key)
                    await pilot.pause(0.1)
    with open_reader(path) as reader:
        (server,) = reader.servers()
        samples = reader.samples(server_id=server.id)
    assert len(samples) >= 3
    assert len({sample.at for sample in samples}) == len(samples)
    assert samples[-1].generation_tokens is not None


async def test_a_store_that_takes_nothing_is_told_and_the_screen_goes_on(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LyingExporter() as exporter:
        with open_writer(data_dir / "llmtune.db") as writer:

            def full(record: object) -> int:
                raise StoreFull("the disk is full")

            monkeypatch.setattr(writer, "insert", full)
            app = LlmtuneApp(data_dir, None, urls=(exporter.url,), records=ForeignRecords(writer))
            async with app.run_test():
                await until(
                    app, lambda: "samples are not recorded now: the disk is full" in screen_text(app), "the line"
                )
                await until(app, lambda: "● answers" in screen_text(app), "an answer")
