"""The charts of a run and of a server, and the list of a session's runs, on the screen."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.strip import Strip

from store.database import open_reader, open_writer
from store.records import RunRecord, SampleRecord
from tests.tui.conftest import fed, screen_text
from tests.tui.panel_samples import HOSTILE_NUMBERS, HOSTILE_TEXTS
from tests.tui.run_recording import BEGIN, record_run, sample, samples
from tests.tui.tune_session import stamp
from tui.app import LlmtuneApp
from tui.runs.run_source import RunSource, load_began
from tui.runs.run_words import found_words
from tui.screens.run_charts import RunChartsScreen, fitted, open_history
from tui.screens.run_list import RunListScreen
from tui.screens.servers import ServersScreen
from tui.screens.session_report import SessionReportScreen
from tui.widgets.chart_stack import ChartStack
from tui.widgets.copy import CopyPanel
from tui.widgets.run_table import RunTable

SMALL, LARGE = (80, 24), (140, 45)
PANELS = ("KV cache", "requests", "preemptions", "tokens", "finished", "TTFT", "GPU memory", "GPU utilization")


async def opened(pilot: Pilot[Any], run_id: int, runs: tuple[int, ...] = ()) -> RunChartsScreen:
    app = pilot.app
    assert isinstance(app, LlmtuneApp)
    screen = RunChartsScreen.of_run(run_id, runs)
    await app.push_screen(screen)
    await fed(pilot)
    return screen


def shown(pilot: Pilot[Any]) -> str:
    assert isinstance(pilot.app, LlmtuneApp)
    return screen_text(pilot.app)


def titles(text: str) -> list[str]:
    """The panels whose words begin a line."""
    return [name for line in text.splitlines() for name in PANELS if line.startswith(f" {name} ")]


async def test_a_small_terminal_shows_one_group_after_the_other(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        await opened(pilot, run_id)
        first = shown(pilot)
        assert "✓ done  [2048 · 0.9]  chat run 2  block 1  13,500 tok/s  p99 TTFT 640 ms" in first
        assert "KV-bound: KV above 95 %" in first
        assert titles(first) == ["KV cache", "requests", "preemptions"]
        assert "max 99.0 %" in first
        await pilot.press("tab")
        assert titles(shown(pilot)) == ["tokens", "finished", "TTFT"]
        await pilot.press("down")
        assert titles(shown(pilot)) == ["GPU memory", "GPU utilization"]
        await pilot.press("down", "shift+tab")
        assert "GPU clock" in shown(pilot)


async def test_a_large_terminal_shows_all_at_once_on_one_axis(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=LARGE) as pilot:
        await opened(pilot, run_id)
        text = shown(pilot)
        assert 'session 1 "awq [/bold] [core.py:58] [red]knobs"' in text
        assert [name for name in PANELS if f" {name} " in text] == list(PANELS)
        axes = [line for line in text.splitlines() if "└" in line]
        assert len(axes) == 1  # both columns end on the same row
        left, right = axes[0].split("└")[1:]
        assert left.index("▶") == right.index("▶")
        assert "e −0:05 chat warm-up 1 ended   s −0:04 the run began" in text
        assert "┈ limit 700 W" in text


async def test_a_cursor_shows_the_values_at_a_moment_and_what_happened_there(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=LARGE) as pilot:
        screen = await opened(pilot, run_id)
        await pilot.press("left", "left")
        assert "at 1:0" in shown(pilot)
        assert "GPU power 120 W" in shown(pilot)
        await pilot.press(*["shift+left"] * 3)
        assert "GPU power 640 W" in shown(pilot)
        await pilot.press("m")
        assert "preemptions began" in shown(pilot)
        await pilot.press("y")
        copied = pilot.app.clipboard
        assert "KV cache: " in copied
        assert "requests running: 184" in copied
        await pilot.press("escape", "escape")
        assert screen.is_current  # the first esc took the cursor away
        assert "mean" in shown(pilot)
        await pilot.press("escape")
        assert not screen.is_current


async def test_a_click_puts_the_cursor_there(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=LARGE) as pilot:
        screen = await opened(pilot, run_id)
        await pilot.click(ChartStack, offset=(70 + 9 + 30, 20))  # the right column
        text = shown(pilot)
        row = next(line for line in text.splitlines() if "at 0:" in line)
        assert screen.query_one(ChartStack).cursor == pytest.approx(31, abs=2)
        assert row.startswith(" at 0:3")
        assert [one.title for one in screen.commands()] == ["Copy", "Export the samples", "The whole server"]


async def test_the_command_is_that_of_the_benchmark_and_the_samples_can_be_written(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        await opened(pilot, run_id)
        await pilot.press("y")
        assert isinstance(pilot.app.screen, CopyPanel)
        command = pilot.app.clipboard
        assert command.startswith("/venv/bin/vllm bench serve --backend openai --base-url http://127.0.0.1:8000 ")
        assert "--seed 42" in command
        await pilot.press("escape", "e")
        await fed(pilot, lambda: "samples written" in shown(pilot))
    rows = (data_dir / "exports" / f"run-{run_id}-samples.csv").read_text().splitlines()
    assert rows[0].startswith("at,run_id,running,")
    assert len(rows) - 1 == 4 + 60 + 3 + 3  # from 3 s before its prompts to 3 s after its load


async def test_the_next_run_and_the_one_before_are_a_key_away(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        screen = await opened(pilot, run_id, (run_id - 1, run_id))
        await pilot.press("left_square_bracket")
        await fed(pilot, lambda: "warm-up 1" in shown(pilot))
        await pilot.press("p")
        await fed(pilot, lambda: "that is the first run of the list" in shown(pilot))
        await pilot.press("n")
        await fed(pilot, lambda: "chat run 2 " in shown(pilot))
        assert screen.is_current


async def test_a_rejected_run_says_why_first(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir, state="rejected", reason="3 of 200 requests failed [/x]")
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        await opened(pilot, run_id)
        assert "✗ rejected" in shown(pilot)
        assert shown(pilot).index("3 of 200 requests failed [/x]") < shown(pilot).index("KV-bound")


async def test_a_rejected_run_shows_its_evidence(data_dir: Path) -> None:
    reason = "the GPU's clocks were held back (hardware thermal) in 2 of 14 readings"
    numbers = {"throttled_perc": 100 / 7, "threshold_perc": 2.0, "at": ["2026-11-30T11:39:09.510Z [/x]"]}
    capped = {"check": "clocks", "reason": "power cap in 5 of 14 readings", "rejects": False, "numbers": {}}
    found = [{"check": "throttled", "reason": reason, "rejects": True, "numbers": numbers}, capped]
    raw = {"load_started_at": stamp(BEGIN), "evidence": found}
    _, _, run_id = record_run(data_dir, state="rejected", reason=reason, raw=raw)
    async with LlmtuneApp(data_dir, None).run_test(size=LARGE) as pilot:
        await opened(pilot, run_id)
        text = shown(pilot)
        evidence = "evidence: throttled perc 14.286, threshold perc 2, at 2026-11-30T11:39:09.510Z [/x]"
        assert text.index(reason) < text.index(evidence) < text.index("note: power cap in 5 of 14 readings")
        assert text.count(reason) == 1


@pytest.mark.parametrize("kept", ["x", {"check": 1}, [1, None, {"numbers": 3}, {"numbers": {"a": [{}, []]}}]])
def test_evidence_that_another_program_wrote_breaks_nothing(kept: object) -> None:
    run = RunRecord(1, 1, 0, 1, 0, "chat", "measured", 0, 1, "rejected", reason="why", raw={"evidence": kept})
    assert found_words(run)[0] == "why"


async def test_a_terminal_that_grew_shows_the_words_that_were_cut(data_dir: Path) -> None:
    end = "of which the workload explains none"
    _, _, run_id = record_run(data_dir, state="rejected", reason=f"39 % of the prompt {'x' * 60} {end}")
    async with LlmtuneApp(data_dir, None).run_test(size=(60, 24)) as pilot:
        await opened(pilot, run_id)
        assert "(now 0.92)." not in shown(pilot)
        await pilot.resize_terminal(*LARGE)
        await fed(pilot, lambda: "(now 0.92)." in shown(pilot))
        assert end in shown(pilot)


async def test_a_server_s_whole_life_shows_its_runs(data_dir: Path) -> None:
    _, server_id, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=LARGE) as pilot:
        await opened(pilot, run_id)
        await pilot.press("w")
        await fed(pilot, lambda: f"server {server_id} " in shown(pilot))
        assert "w 0:00 chat warm-up 1 done" in shown(pilot)
        assert "r 0:05 chat run 2 done" in shown(pilot)
        assert "▶ 0:00 ready" in shown(pilot)
        await pilot.press("c")
        assert ":02:" in shown(pilot)  # the clock


async def test_the_history_of_a_server_opens_from_the_servers(data_dir: Path) -> None:
    _, server_id, _ = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        await fed(pilot)
        assert isinstance(pilot.app.screen, ServersScreen)
        await pilot.press("h")
        await fed(pilot)
        assert isinstance(pilot.app.screen, RunChartsScreen)
        assert f"server {server_id} " in shown(pilot)
        open_history(pilot.app, server_id)
        await fed(pilot)


async def test_what_runs_is_followed(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.runs.run_source.FOLLOW_S", 0.0)
    _, server_id, run_id = record_run(
        data_dir, samples(-10, 20), state="running", finished_at=None, metrics={}, raw={}, limited_by=None
    )
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        await opened(pilot, run_id)
        assert "▶ running" in shown(pilot)
        assert "■" not in shown(pilot)
        with open_writer(data_dir / "llmtune.db") as writer:
            writer.insert_samples([replace(sample(float(at)), server_id=server_id) for at in range(21, 40)])
        await fed(pilot, lambda: "max 99.0 %" in shown(pilot))
        with open_writer(data_dir / "llmtune.db") as writer:
            ended = {"state": "done", "finished_at": stamp(BEGIN + 40), "raw": {"load_started_at": stamp(BEGIN)}}
            writer.update(RunRecord, run_id, **ended)
        await fed(pilot, lambda: "■" in shown(pilot))


async def test_a_run_without_samples_says_so(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir, [])
    for size in (SMALL, LARGE):
        async with LlmtuneApp(data_dir, None).run_test(size=size) as pilot:
            await opened(pilot, run_id)
            assert "No sample of this time is in the store" in shown(pilot)
            await pilot.press("left", "m", "tab", "c", "y", "escape", "e")
            await fed(pilot)


def test_sentences_share_the_lines_there_are() -> None:
    long = "KV-bound: " + "KV above 95 % for 30 s, " * 20
    assert fitted([], 78, 3) == ""
    assert fitted(["rejected", "KV-bound"], 78, 3).splitlines() == ["rejected", "KV-bound"]
    first, second, third = fitted([long, "KV-bound"], 78, 3).splitlines()
    assert (len(first) <= 78, second.endswith("…"), third) == (True, True, "KV-bound")
    assert len(fitted([long, long], 78, 3).splitlines()) == 3


def test_where_the_load_began() -> None:
    run = RunRecord(1, 1, 0, 0, 0, "chat", "measured", 0, 1, "done", started_at=stamp(0), finished_at=stamp(70))
    at = load_began(run)
    assert load_began(replace(run, raw={"load_started_at": stamp(9)})) - at == 9
    assert load_began(replace(run, raw={"result": {"duration": 60.0}})) - at == 10
    assert load_began(replace(run, raw={"result": {"duration": 900.0}})) == at
    assert load_began(replace(run, raw={"result": {"duration": "?"}}, finished_at=None)) == at


async def test_the_runs_of_a_session_are_listed_and_open(data_dir: Path) -> None:
    session_id, _, run_id = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=LARGE) as pilot:
        await pilot.app.push_screen(SessionReportScreen(session_id))
        await fed(pilot)
        await pilot.press("r")
        await fed(pilot)
        assert isinstance(pilot.app.screen, RunListScreen)
        table = pilot.app.screen.query_one(RunTable)
        assert f"{len(table.ids)} runs" in shown(pilot)
        assert "✗ rejected" in shown(pilot)
        assert "3 of 200 requests failed" in shown(pilot)
        await pilot.press("end")
        assert "KV-bound: KV above 95 %" in shown(pilot)
        assert table.chosen is not None
        assert table.chosen.id == run_id
        await pilot.press("enter")
        await fed(pilot)
        assert "chat run 2" in shown(pilot)
        await pilot.press("p")
        await fed(pilot, lambda: "warm-up 1" in shown(pilot))
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, RunListScreen)


async def test_the_list_is_filtered_by_words(data_dir: Path) -> None:
    session_id, _, _ = record_run(data_dir)
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        await pilot.app.push_screen(RunListScreen(session_id))
        await fed(pilot)
        table = pilot.app.screen.query_one(RunTable)
        every = len(table.ids)
        await pilot.press("slash", *"rejected")
        assert len(table.ids) == 1
        assert f"1 of {every} runs" in shown(pilot)
        await pilot.press("enter", "escape")
        assert len(table.ids) == every
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, ServersScreen)


async def test_a_list_of_ten_thousand_makes_only_what_is_seen(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id, _, _ = record_run(data_dir)
    with open_writer(data_dir / "llmtune.db") as writer, writer.transaction():
        for at in range(10_000):
            writer.insert(RunRecord(session_id, 1, at, 1, 0, "chat", "measured", 0, at, "done"))
    made: list[int] = []
    plain = RunTable.render_line

    def counted(self: RunTable, y: int) -> Strip:
        made.append(y)
        return plain(self, y)

    monkeypatch.setattr(RunTable, "render_line", counted)
    async with LlmtuneApp(data_dir, None).run_test(size=SMALL) as pilot:
        await pilot.app.push_screen(RunListScreen(session_id))
        await fed(pilot)
        assert len(made) < 200
        await pilot.press("end")
        assert " 10000 2048 · 0.9" in shown(pilot)
        await pilot.press("pageup", "pageup", "home")
        assert "    1 default" in shown(pilot)


HOSTILE_KEYS = (
    "right",
    "tab",
    "m",
    "shift+right",
    "down",
    "c",
    "question_mark",
    "escape",
    "y",
    "escape",
    "escape",
    "w",
)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_hostile_words_and_numbers_cross_both_screens(data_dir: Path, size: tuple[int, int]) -> None:
    words = " ".join(HOSTILE_TEXTS).replace("\0", "")
    hostile: list[Callable[[int], SampleRecord]] = [
        lambda at: sample(float(at)),
        lambda at: replace(
            sample(float(at)),
            **dict.fromkeys(("kv_perc", "running", "gpu_power_w"), HOSTILE_NUMBERS[at % len(HOSTILE_NUMBERS)]),
            raw={
                "gpus": [{"name": words, "throttle_reasons": [words]}],
                "histograms": words,
                "thinned": {"peak": words},
            },
        ),
    ]
    recorded = [hostile[at % 2](at) for at in range(-5, 50)]
    session_id, _, _ = record_run(data_dir, recorded, words, reason=words, state="rejected", limited_by=words)
    async with LlmtuneApp(data_dir, None).run_test(size=size) as pilot:
        await pilot.app.push_screen(RunListScreen(session_id))
        await fed(pilot)
        await pilot.press("end")
        listed = shown(pilot)
        await pilot.press("enter")
        await fed(pilot)
        for key in HOSTILE_KEYS:
            await pilot.press(key)
        await fed(pilot)
        for text in (listed, shown(pilot)):
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert len(text.splitlines()) == size[1]


def test_a_run_that_is_over_is_read_once(data_dir: Path) -> None:
    _, _, run_id = record_run(data_dir)
    with open_reader(data_dir / "llmtune.db") as reader:
        source = RunSource(run_id)
        assert source.read(reader) is source.read(reader)
