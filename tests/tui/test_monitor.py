"""The Monitor: figures from recorded samples, histories with their gaps, servers that are not ours."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store.records import SampleRecord
from store.writer import Writer
from tests.tui.conftest import NOW, ago, busy_samples, fed, screen_text, server
from tui.app import LlmtuneApp
from tui.panels.spark import bar, blocks
from tui.widgets.copy import CopyPanel


def line(app: LlmtuneApp, label: str) -> str:
    """The screen's line of one quantity."""
    return next((row for row in screen_text(app).splitlines() if row.strip().startswith(f"{label} ")), "")


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_every_figure_stands_where_it_is_looked_for(app: LlmtuneApp, filled: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await fed(pilot)
        await pilot.press("2")
        await fed(pilot)
        await fed(pilot)
        assert all(
            word in line(app, "● ready") for word in ("qwen2.5-7b", "127.0.0.1:8000", "vLLM 0.25.1", "up 1:05:15")
        )
        for label, value, note in (
            ("KV cache", "71.4 %", "of 1,973,808 tokens"),
            ("running", "184", "of 256 at most"),
            ("waiting", "19", "capacity 19 · deferred 0"),
            ("output", "4,512/s", "prefix hits    32.1 %"),
            ("prompt", "9,101/s", "preempted       16 +16/min"),
            ("requests", "35.2/s", "finished     10,525"),
            ("GPU 0", "130.7 GiB", "of 140.4 GiB  budget 129.2    41 °C"),
            ("H200", "98 %", "612 of 700 W  1,980 MHz  not throttled"),
        ):
            shown = line(app, label)
            assert f" {value} " in shown, label
            assert note in shown, label
            assert "█" in shown or "▆" in shown, label
        assert "preemptions began" in screen_text(app)
        assert ("── scheduler" in screen_text(app)) == (size[0] >= 120)  # more of it, where there is room


async def test_what_cannot_be_read_is_absent_and_never_zero(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    number = writer.insert(server(data_dir, facts={}, raw={}))
    writer.insert_samples([SampleRecord(at=ago(second), server_id=number) for second in (3, 2, 1)])
    async with app.run_test() as pilot:
        await pilot.press("2")
        await fed(pilot)
        for label in ("KV cache", "running", "waiting", "output", "prompt", "requests"):
            assert "–" in line(app, label)
            assert "0" not in line(app, label)
        assert "no GPU reading" in line(app, "GPU")


async def test_a_silent_server_is_said_and_its_history_ends(
    app: LlmtuneApp, writer: Writer, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.monitor.monitor_reading.is_running", lambda *_: True)
    number = writer.insert(server(data_dir))
    writer.insert_samples(busy_samples(number)[:-100])
    async with app.run_test() as pilot:
        await pilot.press("2")
        await fed(pilot)
        assert "✗ silent" in screen_text(app)
        assert "no figures for 1:40" in screen_text(app)
        assert "      of 256" in line(app, "running")
        for label in ("KV cache", "running", "waiting", "output", "prompt", "requests"):
            assert line(app, label).removeprefix(f" {label}").split()[0] == "–", label
        assert "no reading for 1:40" in line(app, "GPU")
        assert "▶ live" not in screen_text(app)


@pytest.mark.parametrize("state", ["stopped", "failed"])
async def test_a_server_that_ended_keeps_its_last_minutes_and_no_figure(
    app: LlmtuneApp, writer: Writer, data_dir: Path, state: Any
) -> None:
    why = "out of memory, 0.5 GiB short [/x]" if state == "failed" else None
    number = writer.insert(server(data_dir, state=state, stopped_at=ago(600), ready_at=ago(1000), failure=why))
    shifted = [replace(one, at=ago(601 + 299 - at)) for at, one in enumerate(busy_samples(number))]
    writer.insert_samples(shifted)
    async with app.run_test() as pilot:
        await pilot.press("2")
        await fed(pilot)
        app.monitor_server(number)
        await fed(pilot, until=lambda: "■ ended" in screen_text(app))
        assert state in screen_text(app)
        assert (why or "ended") in screen_text(app)
        assert line(app, "running").split()[1] == "–"
        assert "▆▆▆▆" in line(app, "running")
        assert "finished     10,525" in line(app, "requests")


async def test_a_ready_server_whose_keeper_is_gone_says_so(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    writer.insert_samples(busy_samples(writer.insert(server(data_dir)))[:-100])
    async with app.run_test() as pilot:
        await pilot.press("2")
        await fed(pilot)
        assert "not sampled for 1:40: its keeper is gone" in screen_text(app)


async def test_a_start_that_is_under_way_shows_its_stages(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await pilot.press("2")
        await fed(pilot)
        app.monitor_server(2)
        await fed(pilot, until=lambda: "◐ starting" in screen_text(app))
        assert "✔ weights 0.25 GiB 0.4 s" in screen_text(app)


async def test_keys_window_freeze_copy(app: LlmtuneApp, filled: Path, writer: Writer) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("2")
        await fed(pilot)
        assert "last 60 s" in screen_text(app)
        for expected in ("last 5 min", "last 15 min", "last 30 s", "last 60 s"):
            await pilot.press("w")
            await fed(pilot)
            assert expected in screen_text(app)
        await pilot.press("space")
        await pilot.pause()
        assert "‖ frozen" in screen_text(app)
        writer.insert_samples([replace(busy_samples(1)[-1], at=ago(-0.5), running=7.0)])
        await fed(pilot)
        assert " 184 " in line(app, "running")
        await pilot.press("space")
        await fed(pilot)
        assert "▶ live" in screen_text(app)
        assert " 7 " in line(app, "running")
        await pilot.press("y", "y")
        await pilot.pause()
        assert isinstance(app.screen, CopyPanel)
        assert app.clipboard == "http://127.0.0.1:8000"
        await pilot.press("escape", "y", "j")
        await pilot.pause()
        shown = json.loads(app.clipboard)
        assert (shown["running"], shown["url"]) == (7.0, "http://127.0.0.1:8000")
        assert {"count", "mean_ms", "p50_ms", "p90_ms", "p99_ms"} <= shown["latency"]["ttft"].keys()  # as `snapshot`


async def test_the_monitor_alone_shows_what_runs_at_once(data_dir: Path, filled: Path) -> None:
    app = LlmtuneApp(data_dir, None, monitor=True, now=lambda: NOW)
    async with app.run_test() as pilot:
        await fed(pilot, until=lambda: " 184 " in line(app, "running"))


async def test_s_goes_round_the_servers_that_run(app: LlmtuneApp, filled: Path) -> None:
    async with app.run_test() as pilot:
        await fed(pilot)
        await pilot.press("2")
        await fed(pilot)
        assert "127.0.0.1:8000" in screen_text(app)
        await pilot.press("s")
        await fed(pilot)
        await fed(pilot, until=lambda: "127.0.0.1:8001" in screen_text(app))
        assert "◐ starting" in screen_text(app)
        await pilot.press("s")
        await fed(pilot, until=lambda: "127.0.0.1:8000" in screen_text(app))


async def test_of_a_sweep_the_launch_that_runs_is_followed(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    from tests.tui.test_app import session

    number = writer.insert(session(state="paused"))
    first = writer.insert(server(data_dir, name="launch-1", served_name="launch-1", session_id=number))
    async with app.run_test() as pilot:
        await pilot.press("2")
        await fed(pilot)
        app.monitor_server(first)
        await fed(pilot, until=lambda: "launch-1" in screen_text(app))
        writer.update(type(server(data_dir)), first, state="stopped", stopped_at=ago(0))
        writer.insert(server(data_dir, name="launch-2", served_name="launch-2", session_id=number))
        await fed(pilot, until=lambda: "launch-2" in screen_text(app))


async def test_a_server_whose_session_was_deleted_gives_way(app: LlmtuneApp, writer: Writer, data_dir: Path) -> None:
    from tests.tui.test_app import session

    number = writer.insert(session(state="done"))
    gone = writer.insert(server(data_dir, served_name="gone", session_id=number, state="stopped", stopped_at=ago(9)))
    writer.insert(server(data_dir, served_name="stays"))
    async with app.run_test() as pilot:
        await pilot.press("2")
        await fed(pilot)
        app.monitor_server(gone)
        await fed(pilot, until=lambda: "○ stopped  gone" in screen_text(app))
        writer.delete_session(number)
        await fed(pilot, until=lambda: "  stays  " in screen_text(app))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None])
def test_blocks_take_anything(bad: float | None) -> None:
    assert blocks([0.0, 1.0, bad, 2.0], top=2.0) == ["▁▄ █"]
    assert blocks([0.0, 2.0], height=2) == [" █", "▁█"]
    assert blocks([bad]) == [" "]
    assert blocks([-5.0, 9.0], top=1.0) == ["▁█"]
    assert bar(bad, 10.0, 4) == "░░░░"
    assert bar(5.0, bad, 4) == "░░░░"
