"""Every label that the Monitor draws stands in its legend."""

import re
from pathlib import Path

from store.writer import Writer
from tests.lying_exporter import LyingExporter
from tests.served_pages import Served
from tests.tui.conftest import busy_samples, fed, screen_text, server
from tests.tui.test_monitor_foreign import answering, until
from tui.app import LlmtuneApp
from tui.panels.row import MUTED
from tui.screens.monitor import MonitorScreen
from tui.widgets.lines import Lines

WORD = re.compile(r"[A-Za-z][A-Za-z0-9/%-]*")
PLAIN_WORDS = {  # said in passing, not the name of a number
    "server", "of", "next", "all", "every", "last", "min", "since", "to", "in", "and", "the", "is", "each", "h200",
}  # fmt: skip


def labels(app: LlmtuneApp) -> set[str]:
    """The muted words at the start of a column, which is how a label is drawn."""
    found = set()
    for lines in app.screen.query(Lines):
        if not lines.display:
            continue
        for row in lines.rows:
            for at, (text, kind) in enumerate(row):
                begins = at == 0 or row[at - 1][0].endswith("  ")
                if kind == MUTED and begins and WORD.search(text):
                    found.add(text.strip())
    return found


def unknown(app: LlmtuneApp) -> set[str]:
    assert isinstance(app.screen, MonitorScreen)
    legend = " ".join(f"{number.name} {number.meaning}" for number in app.screen.LEGEND).lower()
    words = {word for label in labels(app) for word in WORD.findall(label.lower()) if len(word) > 1}
    return {word for word in words - PLAIN_WORDS if word not in legend}


async def test_the_legend_names_all_of_a_server_of_ours(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    number = writer.insert(server(data_dir))
    writer.insert_samples(busy_samples(number))
    async with app.run_test(size=(200, 70)) as pilot:
        await pilot.press("2")
        await fed(pilot)
        await fed(pilot)
        assert {"KV cache", "running", "waiting", "output", "prompt", "requests"} <= labels(app)
        assert not unknown(app), screen_text(app)


async def test_the_legend_names_all_that_a_foreign_server_can_have(data_dir: Path) -> None:
    served = Served(engines=2, waiting=3, adapters=("a", "b"), drafts_per_s=10, rejected_per_s=1, preemptions_per_s=2)
    async with LyingExporter(served) as exporter, LyingExporter() as other:
        app = LlmtuneApp(data_dir, None, urls=(exporter.url, other.url))
        async with app.run_test(size=(200, 70)) as pilot:
            await answering(pilot, app)
            await until(app, lambda: "speculation" in screen_text(app), "the panel of drafts")
            assert not unknown(app), screen_text(app)
