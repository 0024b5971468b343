"""What was found of candidates, in Tune and the report: words, keys, the winner served. At 80x24 and 140x45."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from engine.records import EngineError
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import SessionRecord
from tests.tui.conftest import server
from tests.tui.judged_session import keep, with_winner
from tests.tui.test_tune import LARGE, SMALL, app_on, on_tune, said, text_of, until
from tests.tuning.played_sessions import Truth, plan_of, play
from tui.screens import base, serving
from tui.screens.pareto import ParetoScreen
from tui.screens.servers import ServersScreen
from tui.screens.session_report import SessionReportScreen
from tui.servers.server_form import Wish
from tui.tune import tune_table
from tui.tune.pareto_view import pareto_plot
from tui.tune.serving import to_serve, wish_of
from tui.tune.tune_source import read_view
from tui.tune.tune_view import TuneView
from tui.tune.verdict_cells import candidate_line, limits_word, noise_line, sentence, verdict_words
from tui.widgets.confirm import Confirm
from tui.widgets.picture import Picture
from tui.widgets.results_table import ResultsTable
from tui.widgets.server_table import ServerTable


@pytest.fixture(autouse=True)
def _no_keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "is_running", lambda *_: False)


@pytest.fixture
def won(tmp_path: Path) -> Path:
    """A session that is over and has a winner."""
    keep(tmp_path / "data", with_winner())
    return tmp_path


def view_of(folder: Path) -> TuneView:
    with open_reader(database_file(folder / "data")) as reader:
        return read_view(reader, reader.session(1), lambda _: False, "2026-11-30T12:00:00.000Z")


# words


def test_verdicts_are_glyphs_with_words(won: Path) -> None:
    view = view_of(won)
    assert [verdict_words(view, "chat", index) for index in range(4)] == [
        "",
        "✓ better",
        "✗ worse, left",
        "? gain implausible",
    ]
    assert verdict_words(view, "chat", 3, short=True) == "? implausible"
    assert sentence(view).startswith("seqs 100 is better than the default: +6.0 %")
    assert noise_line(view, "chat") == "noise of total tok/s: run 0.3 %, launch 0.3 %, no drift seen"
    assert candidate_line(view, "chat", 1).startswith("[100]: ✓ better after block 2 +6.0 % [+1.5, +11]; too good")
    assert "kept (" in candidate_line(view, "chat", 0)


def test_undecided_says_how_many_more_blocks(tmp_path: Path) -> None:
    played = play(plan_of(2, 4), Truth({1: 0.02}, launch_sd=0.012), seed=1).until(2)
    keep(tmp_path / "data", played)
    words = [verdict_words(view_of(tmp_path), "chat", index, short=True) for index in (1, 2)]
    assert all(word.startswith("? ") for word in words), words


def test_a_broken_limit_is_infeasible_and_said_whole(tmp_path: Path) -> None:
    plan = plan_of(2, 4, limits=("p99_ttft_ms <= 300",))
    keep(tmp_path / "data", play(plan, Truth({1: 0.1}, launch_sd=0.003), seed=2, state="done"))
    view = view_of(tmp_path)
    assert verdict_words(view, "chat", 1).startswith("⊘ infeasible")
    assert view.result.judgement is not None
    judged = view.result.judgement.workloads["chat"].candidates
    assert limits_word(judged[1]) == "✗ broken"
    assert limits_word(replace(judged[1], limits=())) == ""
    assert limits_word(replace(judged[1], limits=(replace(judged[1].limits[0], verdict=None),))) == "·"
    assert "is broken" in candidate_line(view, "chat", 1)


@pytest.mark.parametrize("width", [80, 100, 120, 140])
def test_a_table_is_no_wider_than_its_room(won: Path, width: int) -> None:
    found = tune_table.table(view_of(won), "chat", "total_tok_per_s", width)
    assert sum(found.widths) <= width
    titles = [column.title for column in found.columns]
    assert titles[-1] == "verdict"
    assert "vs default" in titles


def test_what_has_no_room_goes_in_its_order(won: Path) -> None:
    view = view_of(won)
    settings = {f"some-very-long-flag-{at}": at for at in range(3)}
    many = replace(view.result.results[1], candidate=replace(view.candidates[1], settings=settings))
    crowded = replace(view, result=replace(view.result, results=(view.result.results[0], many)))
    titles = [column.title for column in tune_table.table(crowded, "chat", "total_tok_per_s", 80).columns]
    assert "p99 TTFT" not in titles
    assert "limits" not in titles
    assert titles[-1] == "verdict"


# which is served


def test_the_winner_is_served_unless_the_cursor_is_on_another(won: Path) -> None:
    view = view_of(won)
    default, winner, worse, _ = view.candidates
    assert to_serve(view, default) == winner
    assert to_serve(view, None) == winner
    assert to_serve(view, worse) == worse
    assert view.plan is not None
    wish = wish_of(replace(view.plan, server={"max-num-seqs": 16, "port": 9, "host": "0.0.0.0"}), winner)
    assert (wish.host, wish.port, wish.flags) == ("0.0.0.0", None, {"max-num-seqs": 100})


def test_the_front_is_joined_and_the_rest_stands_behind(won: Path) -> None:
    found = pareto_plot(view_of(won), "chat", "total_tok_per_s", "p99_ttft_ms")
    assert [line[:3] for line in found.lines] == ["B ●", "A ○", "D ○", "C ○"]
    assert found.lines[0].endswith("✓ better, limits ✓ kept")
    assert len(found.series[0].points) == 1  # the winner beats all in both


# screens


async def test_the_picture_is_drawn_anew_when_it_gets_its_room(won: Path) -> None:
    """However late that is: nothing more comes of a session that is done, so that nothing else would draw it."""
    async with app_on(won, session=1).run_test(size=LARGE) as pilot:
        screen = await on_tune(pilot, "✓ better")
        await until(pilot, lambda: "┤" in text_of(pilot))
        events, picture = screen.query_one("#events"), screen.query_one(Picture)
        for shown in (False, True):
            before = picture.content_size
            events.display = shown
            await until(pilot, lambda before=before: picture.content_size != before)  # type: ignore[misc]
            await until(pilot, lambda: len(str(picture.render()).splitlines()[0]) == picture.content_size.width)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_verdict_stands_on_the_tune_screen(won: Path, size: tuple[int, int]) -> None:
    async with app_on(won, session=1).run_test(size=size) as pilot:
        screen = await on_tune(pilot, "✓ better")
        shown = text_of(pilot)
        for words in (
            "seqs 100 is better than the default: +6.0 % [+1.5, +11] total tok/s, and keeps",
            "✗ worse, left",
            "implausible",
            "+6.0 % [+1.5, +11]",
            "✓ kept",
            "[100]: ✓ better after block 2",
            "p99 TTFT ms ≤ 500",
            "noise of total tok/s: run 0.3 %, launch 0.3 %, no drift seen",
            "unequal noise: seqs 101",
            "= $0.69",
            "S serve",
            "P pareto",
        ):
            assert words in shown, words
        assert screen.query_one("#first", ResultsTable).candidate == 1  # the winner lies under the cursor
        assert all(len(line) <= size[0] for line in shown.splitlines())
        await until(pilot, lambda: size == SMALL or "┤" in text_of(pilot))  # the chart, where there is room
        assert "no room for a chart" not in text_of(pilot)
        assert "in 95 of 100 sessions" in dict(screen.LEGEND)["✓ better"]


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_one_key_serves_the_winner_and_shows_it(
    won: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    asked: list[tuple[Wish, Any]] = []

    def start(data_dir: Path, vllm: str | None, wish: Wish) -> int:
        asked.append((wish, vllm))
        with open_writer(database_file(data_dir)) as writer:
            writer.insert(server(data_dir, name="another", state="ready"))
            return writer.insert(server(data_dir, name=wish.name, state="starting", port=8001, ready_at=None))

    monkeypatch.setattr(serving, "start_wish", start)
    with open_writer(database_file(won / "data")) as writer:
        writer.update(SessionRecord, 1, raw={**with_winner().session.raw, "installation": {"path": "/v/bin/vllm"}})
    async with app_on(won, session=1).run_test(size=size) as pilot:
        await on_tune(pilot, "S serve")
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        assert "Serve the winner [100] as a server by hand" in text_of(pilot)
        await pilot.press("n")
        assert asked == []
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, ServersScreen) and "knobs: seqs 100" in text_of(pilot))
        await until(pilot, lambda: (chosen := pilot.app.screen.query_one(ServerTable).chosen) is not None
                    and chosen.name == "knobs: seqs 100")  # fmt: skip
    (wish, vllm), *more = asked
    assert more == []
    assert vllm == "/v/bin/vllm"
    assert (wish.model, wish.flags) == ("org/model", {"max-num-seqs": 100})


async def test_what_cannot_be_served_is_a_line(won: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any) -> int:
        raise EngineError("HF_TOKEN is a secret and was kept nowhere [/x]")

    monkeypatch.setattr(serving, "start_wish", start)
    async with app_on(won).run_test(size=SMALL) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "knobs" in text_of(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionReportScreen) and "S serve" in text_of(pilot))
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: "it is not served: HF_TOKEN is a secret" in said(pilot))


async def test_nothing_is_served_while_the_session_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "is_running", lambda *_: True)
    keep(tmp_path / "data", with_winner(state="running"))
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "S stop")
        assert "S serve" not in text_of(pilot)
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm) and "Stop session" in text_of(pilot))


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_throughput_against_latency(won: Path, size: tuple[int, int]) -> None:
    async with app_on(won, session=1).run_test(size=size) as pilot:
        await on_tune(pilot, "P pareto")
        await pilot.press("P")
        await until(pilot, lambda: isinstance(pilot.app.screen, ParetoScreen) and "p99 TTFT (ms)" in text_of(pilot))
        shown = text_of(pilot)
        for words in ("B ● [100]", "A ○ default", "total tok/s, chat: up and left is better", "✓ better"):
            assert words in shown, words
        await pilot.press("m")
        await until(pilot, lambda: "output tok/s, chat" in text_of(pilot))
        await pilot.press("escape")
        await on_tune(pilot, "P pareto")


async def test_without_a_latency_nothing_is_drawn(tmp_path: Path) -> None:
    played = play(plan_of(1, 2), Truth()).with_runs(
        lambda run: replace(run, metrics={"total_tok_per_s": run.metrics["total_tok_per_s"]})
    )
    keep(tmp_path / "data", played)
    async with app_on(tmp_path, session=1).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "P pareto")
        await pilot.press("P", "m", "l", "w")
        await until(pilot, lambda: "nothing to draw" in text_of(pilot))


async def test_the_report_as_one_html_file(won: Path) -> None:
    target = won / "data" / "exports" / "session-1.html"
    async with app_on(won).run_test(size=SMALL) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "seqs 100 is better than the" in text_of(pilot))  # the list has the sentence
        await pilot.press("e", "h")
        await until(pilot, target.exists)
        await until(pilot, lambda: "written: " in said(pilot))
    page = target.read_text(encoding="utf-8")
    assert page.startswith(("<!DOCTYPE html>", "<!doctype html>"))
    assert "seqs 100 is better than the default" in page


async def test_the_report_holds_what_the_table_does_not(won: Path) -> None:
    async with app_on(won).run_test(size=SMALL) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "knobs" in text_of(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionReportScreen) and "begun" in text_of(pilot))
        below = pilot.app.screen.query_one("#details Static", Static)
        await until(pilot, lambda: "Cost and energy" in str(below.render()))
        for words in ("unequal noise", "Launched no more", "fewer than the", "What the numbers mean", "environment"):
            assert words in str(below.render()), words


OFF_THE_LOOP = """
import asyncio, sys, threading
from pathlib import Path

class Guard:
    seen = set()
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root in ("numpy", "scipy"):
            self.seen.add(root)
            if threading.current_thread() is threading.main_thread():
                raise AssertionError(f"{name} is imported on the event loop")
        return None

guard = Guard()
sys.meta_path.insert(0, guard)
import tui.monitor.finding
tui.monitor.finding.finder = lambda: tuple
import tui.app
tui.app.LOAD_AFTER_S = 1000.0
from tui.app import LlmtuneApp

async def main():
    app = LlmtuneApp(Path(sys.argv[1]), None, open_session=1)
    async with app.run_test(size=(80, 24)) as pilot:
        for keys in (("m",), ("P",), ("escape",), ("o",), ("escape",), ("e",), ("4",)):
            await pilot.press(*keys)
            wanted = app.readings + 3
            for _ in range(500):
                await asyncio.sleep(0.02)
                if app._exception:
                    raise app._exception
                if app.readings >= wanted:
                    break
                app.ask()
    assert guard.seen == {"numpy", "scipy"}, guard.seen

asyncio.run(main())
"""


def test_what_is_slow_to_import_never_is_on_the_event_loop(won: Path) -> None:
    command = [sys.executable, "-c", OFF_THE_LOOP, str(won / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-2000:]
