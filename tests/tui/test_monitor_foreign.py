"""Servers that are not ours, in the Monitor, over every way in which one can die, lie and come back. In real seconds:
the Monitor looks once a second, and what was silent for some of them is what is tested."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from engine.discovery import FoundServer
from tests.lying_exporter import LyingExporter
from tests.served_pages import Served
from tests.tui.conftest import screen_text
from tui.app import LlmtuneApp
from tui.screens.monitor import MonitorScreen

LABELS = ("KV cache", "running", "waiting", "output", "prompt", "requests")
PATIENCE_S = 10.0


def line(app: LlmtuneApp, label: str) -> str:
    return next((row for row in screen_text(app).splitlines() if row.strip().startswith(f"{label} ")), "")


def value(app: LlmtuneApp, label: str) -> str:
    return next(iter(line(app, label).removeprefix(f" {label}").split()), "")


async def until(app: LlmtuneApp, holds: Callable[[], bool], what: str = "") -> float:
    """Wait until that holds; for how long it took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE_S, f"{what} did not come:\n{screen_text(app)}"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def answering(pilot: Pilot[Any], app: LlmtuneApp) -> None:
    """Four looks a second, and a first answer."""
    await pilot.press("-", "-")
    await until(app, lambda: "● answers" in screen_text(app) and "every 0.25 s" in screen_text(app), "an answer")


@pytest.fixture
async def exporter() -> AsyncIterator[LyingExporter]:
    async with LyingExporter(Served(model="[/mnt/x]", running=7, waiting=3, kv=0.4)) as opened:
        yield opened


async def test_its_figures_come_from_what_was_added(exporter: LyingExporter, data_dir: Path) -> None:
    app = LlmtuneApp(data_dir, None, urls=(exporter.url,))
    async with app.run_test() as pilot:
        await answering(pilot, app)
        assert isinstance(app.screen, MonitorScreen)
        await until(app, lambda: value(app, "output") not in ("–", "0.0/s"), "a rate")
        await until(app, lambda: "200 ms" in line(app, "TTFT") or "<" in line(app, "TTFT"), "a latency")
        assert "[/mnt/x]" in screen_text(app)
        assert value(app, "running") == "7"
        assert value(app, "waiting") == "3"
        assert value(app, "KV cache") == "40.0"


# What else a page can be is the sampler's business: tests/engine/test_sampler.py.
@pytest.mark.parametrize("behaviour", ["refuse", "hang", "stop", "garbage", "html", "500"])
async def test_a_server_that_is_gone_is_unmistakable_and_comes_back(
    exporter: LyingExporter, data_dir: Path, behaviour: str
) -> None:
    app = LlmtuneApp(data_dir, None, urls=(exporter.url,))
    async with app.run_test() as pilot:
        await answering(pilot, app)
        await until(app, lambda: "▆" in line(app, "running") or "█" in line(app, "running"), "a history")
        exporter.behave(behaviour)
        await until(app, lambda: "✗ silent" in screen_text(app), "silence")  # how soon: test_liveness.py
        await until(app, lambda: "no figures for" in screen_text(app), "what is known of it")
        assert all(value(app, label) == "–" for label in LABELS)
        assert "▶ live" not in screen_text(app)
        exporter.behave("answer")
        await until(app, lambda: "● answers" in screen_text(app), "its return")
        await until(app, lambda: "answers again after" in screen_text(app), "an event")
        assert value(app, "running") == "7"


async def test_a_history_stops_where_the_server_did(exporter: LyingExporter, data_dir: Path) -> None:
    app = LlmtuneApp(data_dir, None, urls=(exporter.url,))
    async with app.run_test() as pilot:
        await pilot.press("w", "w", "w")  # 30 s
        await answering(pilot, app)
        await until(app, lambda: line(app, "running").rstrip().endswith("█"), "a history")
        exporter.behave("refuse")
        await until(app, lambda: "✗ silent" in screen_text(app), "silence")
        # A column is 30 s / 26: it is empty as soon as one has passed.
        await until(app, lambda: "█ " in line(app, "running") and line(app, "running").rstrip()[-1] == "█", "a gap")
        at = line(app, "running").rindex("█")
        await until(app, lambda: line(app, "running").rindex("█") < at, "a wider gap")


async def test_an_engine_that_stands_still_is_said_though_its_page_answers(
    exporter: LyingExporter, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.monitor.liveness.SLOW_S", 0.5)
    monkeypatch.setattr("tui.monitor.liveness.STALLED_S", 2.0)
    app = LlmtuneApp(data_dir, None, urls=(exporter.url,))
    async with app.run_test() as pilot:
        await answering(pilot, app)
        exporter.served.prompt_per_s = exporter.served.generation_per_s = exporter.served.requests_per_s = 0
        exporter.served.leave_out = ("iteration_tokens",)
        await until(app, lambda: "◍ no token" in screen_text(app), "a first sign")
        await until(app, lambda: "✗ stalled" in screen_text(app), "a stall")
        await until(app, lambda: "its engine has computed nothing for" in screen_text(app), "the line that says why")
        assert "bound" not in screen_text(app)  # nothing limits what stands still
        assert value(app, "running") == "7"  # the queue is of now


async def test_a_restart_is_an_event_and_its_counters_begin_anew(exporter: LyingExporter, data_dir: Path) -> None:
    app = LlmtuneApp(data_dir, None, urls=(exporter.url,))
    async with app.run_test() as pilot:
        await answering(pilot, app)
        await until(app, lambda: value(app, "output") != "–", "a rate")
        exporter.served.restart()
        await until(app, lambda: "restarted" in screen_text(app), "the event")
        await until(app, lambda: value(app, "output") not in ("–", "0.0/s"), "a rate")
        assert not value(app, "output").startswith("-")


async def test_one_that_hangs_delays_no_other_and_no_key(exporter: LyingExporter, data_dir: Path) -> None:
    async with LyingExporter(Served(model="other", running=2)) as other:
        app = LlmtuneApp(data_dir, None, urls=(exporter.url, other.url))
        async with app.run_test() as pilot:
            await answering(pilot, app)
            exporter.behave("hang")
            await until(app, lambda: "✗ silent" in screen_text(app), "silence")
            asked = len(other.asked)
            await asyncio.sleep(1.0)
            assert len(other.asked) >= asked + 3
            for key, shown in (("w", "last 5 min"), ("plus", "every 0.5 s"), ("space", "‖ frozen"), ("o", "TTFT")):
                app.simulate_key(key)
                assert await until(app, lambda shown=shown: shown in screen_text(app), key) < 0.3  # type: ignore[misc]
            await pilot.press("space", "o")
            await pilot.press("s")
            await until(app, lambda: "other" in line(app, "● answers"), "the other one")
            assert "▆" in line(app, "KV cache") or "▃" in line(app, "KV cache")  # it has a history at once
            assert "server 2 of 2" in screen_text(app)
            await pilot.press("up")
            await until(app, lambda: "server 1 of 2" in screen_text(app), "the one before")


async def test_servers_of_this_machine_are_found_once_each(
    exporter: LyingExporter, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LyingExporter(Served(model="other", running=64)) as other:
        there = (
            FoundServer(exporter.url.replace("127.0.0.1", "localhost"), 1, {}, "m", "m"),
            FoundServer(other.url, 2, {"max-num-seqs": 64}, "other", "other"),
        )
        monkeypatch.setattr("tui.monitor.finding.finder", lambda: lambda: there)
        app = LlmtuneApp(data_dir, None, urls=(exporter.url,))
        async with app.run_test(size=(120, 40)):
            await until(app, lambda: "server 1 of 2" in screen_text(app), "the found server")
            await until(app, lambda: screen_text(app).count("● answers") == 3, "a list of both")
            app.simulate_key("s")
            await until(app, lambda: "of 64 at most" in screen_text(app), "what its command line says")


async def test_old_names_and_absent_series(data_dir: Path) -> None:
    async with LyingExporter(Served(names="old", running=5, leave_out=("kv", "cache_usage"))) as old:
        app = LlmtuneApp(data_dir, None, urls=(old.url,))
        async with app.run_test() as pilot:
            await answering(pilot, app)
            await until(app, lambda: value(app, "running") == "5", "the figures")
            assert value(app, "KV cache") == "–"


async def test_the_overview_lists_all_and_arrows_choose(exporter: LyingExporter, data_dir: Path) -> None:
    async with LyingExporter(Served(model="other", running=2)) as other, LyingExporter(behaviour="refuse") as dead:
        app = LlmtuneApp(data_dir, None, urls=(exporter.url, other.url, dead.url))
        async with app.run_test() as pilot:
            await answering(pilot, app)
            await pilot.press("o")
            await until(app, lambda: screen_text(app).count("● answers") == 3, "all of them")
            assert "✗ silent" in screen_text(app)
            assert "▸ ● answers" in screen_text(app)
            await pilot.press("down")
            await until(app, lambda: "▸ ● answers         other" in screen_text(app), "the next")
            await pilot.press("enter")
            await until(app, lambda: value(app, "running") == "2", "its blocks")
