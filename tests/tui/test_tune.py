"""Tune, driven by keys at 80x24 and 140x45."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static, TextArea

from engine.keeper.client import KeeperGone
from engine.records import Installation
from store.database import open_reader, open_writer
from store.records import RunRecord, SessionRecord
from tests.tui.tune_session import session_in, stamp
from tui import hindrance
from tui.app import LlmtuneApp
from tui.screens import base, plan_editing, tune
from tui.screens.session_report import SessionReportScreen
from tui.screens.tune import TuneScreen
from tui.widgets.ask_line import AskLine
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel
from tui.widgets.grid_editor import GridEditor
from tui.widgets.results_table import ResultsTable
from tui.widgets.status_line import StatusLine
from tui.widgets.workload_form import WorkloadForm
from tuning.plans.demo import demo_plan
from tuning.sessions import MachineChanged

SMALL, LARGE = (80, 24), (140, 45)


@dataclass
class Keeper:
    """Stands where a living keeper would answer."""

    alive: bool = True
    error: Exception | None = None
    blocked: str | None = None
    heard: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def call(self, data_dir: Path, kind: str, number: int, command: str, **arguments: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        if command == "status":
            return {"blocked": self.blocked}
        self.heard.append((number, command, arguments))
        return {}

    def start(self, data_dir: Path, session_id: int, *_: Any, accept_changes: bool = False) -> int:
        if self.changes and not accept_changes:
            raise MachineChanged(session_id, self.changes)
        self.started.append(session_id)
        return 1


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    made = Keeper()
    monkeypatch.setattr(base, "is_running", lambda *_: made.alive)
    for module in (tune, hindrance):
        monkeypatch.setattr(module, "call", made.call)
    for module in (tune, plan_editing):
        monkeypatch.setattr(module, "start_keeper", made.start)
    return made


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the editor starts from on a machine without sessions."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["X"], "model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"\0" * 16)
    monkeypatch.setattr(plan_editing, "demo_plan", lambda *_, **__: demo_plan(str(folder), None))
    return str(folder)


def app_on(tmp_path: Path, session: int | None = None) -> LlmtuneApp:
    (tmp_path / "data").mkdir(exist_ok=True)
    return LlmtuneApp(tmp_path / "data", None, open_session=session)


async def until(pilot: Pilot[Any], true: Callable[[], bool]) -> None:
    for _ in range(200):
        await pilot.pause(0.02)
        if true():
            return
    raise AssertionError("it did not happen within four seconds:\n" + text_of(pilot))


def text_of(pilot: Pilot[Any]) -> str:
    """What stands on the screen, line by line."""
    strips = pilot.app.screen._compositor.render_strips(pilot.app.size)
    return "\n".join(strip.text.rstrip() for strip in strips)


async def on_tune(pilot: Pilot[Any], words: str) -> TuneScreen:
    if not isinstance(pilot.app.screen, TuneScreen):
        await pilot.press("3")
    await until(pilot, lambda: isinstance(pilot.app.screen, TuneScreen) and words in text_of(pilot))
    await until(pilot, lambda: "? help" in text_of(pilot))  # the footer comes last
    assert isinstance(pilot.app.screen, TuneScreen)
    return pilot.app.screen


def said(pilot: Pilot[Any]) -> str:
    return pilot.app.screen.query_one(StatusLine).line


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_a_running_session_is_shown_whole(tmp_path: Path, keeper: Keeper, size: tuple[int, int]) -> None:
    session_in(tmp_path / "data", finished=False)
    async with app_on(tmp_path).run_test(size=size) as pilot:
        await on_tune(pilot, "measuring")
        shown = text_of(pilot)
        for words in (
            "▶ running",
            "block 2 of 2",
            "decide by total tok/s, chat.p99_ttft_ms <= 500",
            "run 2 of 2 chat on [8192, 0.90]",
            "vs default",
            "p99 TTFT",
            "baseline",
            "! no start",
            "[16384, 0.98] did not start: out of memory",
            "spent",
            "to go",
            "vllm serve 'org/Model-[/bold]-7B'",
            "a add",
            "S stop",
        ):
            assert words in shown, words
        assert ("pre[/x]fix (2 of 2" in shown) == (size == LARGE)  # both workloads where there is room
        assert "KV peak" in shown or size == SMALL
        assert "\x1b" not in shown


async def test_cells_change_in_place_as_runs_finish(tmp_path: Path, keeper: Keeper) -> None:
    number = session_in(tmp_path / "data", finished=False)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "measuring")
        table = screen.query_one("#first", ResultsTable)
        await pilot.press("down", "down")
        rows = list(table.rows)
        before = table.get_cell("2", "metric").plain
        with open_reader(tmp_path / "data" / "llmtune.db") as reader:
            run = reader.runs(number)[-1]
        assert run.id is not None
        with open_writer(tmp_path / "data" / "llmtune.db") as writer:
            metrics = {"total_tok_per_s": 90000.0, "p99_ttft_ms": 1.0}
            writer.update(RunRecord, run.id, state="done", metrics=metrics, finished_at=stamp(2600))
        await until(pilot, lambda: table.get_cell("2", "metric").plain != before)
        assert list(table.rows) == rows
        assert table.candidate == 2


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_what_limited_the_runs_stands_below_the_table(
    tmp_path: Path, keeper: Keeper, size: tuple[int, int]
) -> None:
    session_in(tmp_path / "data", finished=False)
    async with app_on(tmp_path).run_test(size=size) as pilot:
        await on_tune(pilot, "default: Sequence-bound: at max-num-seqs for all 30 s, about 40 waiting")
        assert ("the other two cannot help." in text_of(pilot)) == (size == LARGE)
        await pilot.press("down")
        await until(pilot, lambda: "[2048, 0.90]: KV-bound in 2 of 4 runs: KV above 95 %" in text_of(pilot))


async def test_keys_of_a_running_session(tmp_path: Path, keeper: Keeper) -> None:
    number = session_in(tmp_path / "data", finished=False)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "measuring")
        await pilot.press("p")
        await until(pilot, lambda: "pauses" in said(pilot))
        await pilot.press("x")
        await until(pilot, lambda: "the default stays" in said(pilot))
        await pilot.press("down", "x")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        assert "[2048, 0.90]" in text_of(pilot)
        await pilot.press("n", "x")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: len(keeper.heard) == 2)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskLine))
        await pilot.press(*"max-num-seqs=64", "enter")
        await until(pilot, lambda: len(keeper.heard) == 3)
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: len(keeper.heard) == 4)
    assert keeper.heard == [
        (number, "pause", {}),
        (number, "skip", {"candidate": 1}),
        (number, "add", {"settings": {"max-num-seqs": 64}}),
        (number, "stop", {}),
    ]


async def test_a_keeper_that_does_not_answer_is_a_line(tmp_path: Path, keeper: Keeper) -> None:
    session_in(tmp_path / "data", finished=False)
    keeper.error = KeeperGone("no keeper runs for session 1 [/x]")
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "measuring")
        await pilot.press("p")
        await until(pilot, lambda: "no keeper runs for session 1 [/x]" in text_of(pilot))


async def test_a_keeper_that_cannot_write_is_a_line_for_as_long(tmp_path: Path, keeper: Keeper) -> None:
    session_in(tmp_path / "data", finished=False)
    keeper.blocked = "No space is left: free some [/x]"
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "measuring")
        await until(pilot, lambda: "waits, and loses nothing: No space is left: free some [/x]" in text_of(pilot))
        keeper.blocked = None
        await until(pilot, lambda: "No space is left" not in text_of(pilot))


async def test_a_session_whose_keeper_is_gone_offers_to_resume(tmp_path: Path, keeper: Keeper) -> None:
    number = session_in(tmp_path / "data", finished=False)
    keeper.alive = False
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "its keeper is gone")
        assert "R resume" in text_of(pilot)
        assert "S stop" not in text_of(pilot)
        await pilot.press("R")
        await until(pilot, lambda: keeper.started == [number])


async def test_another_machine_is_asked_about_before_a_session_goes_on(tmp_path: Path, keeper: Keeper) -> None:
    number = session_in(tmp_path / "data", finished=False)
    keeper.alive, keeper.changes = False, ["driver: 580 then, 590 [/x] now"]
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "its keeper is gone")
        await pilot.press("R")
        await until(pilot, lambda: "driver: 580 then" in text_of(pilot) and "590 [/x] now." in text_of(pilot))
        await pilot.press("n")
        await on_tune(pilot, "its keeper is gone")
        assert keeper.started == []
        await pilot.press("R")
        await until(pilot, lambda: "measured on another machine" in text_of(pilot))
        await pilot.press("y")
        await until(pilot, lambda: keeper.started == [number])


async def test_metric_workload_copy_and_report(tmp_path: Path, keeper: Keeper) -> None:
    number = session_in(tmp_path / "data")
    async with app_on(tmp_path, number).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "✓ done")
        await pilot.press("m")
        await until(pilot, lambda: "output tok/s" in text_of(pilot))
        await pilot.press("w")
        await until(pilot, lambda: "pre[/x]fix (2 of 2" in text_of(pilot))
        await pilot.press("down", "y")
        await until(pilot, lambda: isinstance(pilot.app.screen, CopyPanel))
        assert "--max-num-batched-tokens 2048" in pilot.app.clipboard
        await pilot.press("escape", "o")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionReportScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuneScreen))


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_editor_says_at_once_what_it_costs(tmp_path: Path, model: str, size: tuple[int, int]) -> None:
    async with app_on(tmp_path).run_test(size=size) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        assert "guess: nothing was measured here yet" in text_of(pilot)
        screen.query_one("#grid", TextArea).text = "max-num-seqs: default 4 8\nmax-num-batched-tokens: default 2 256"
        screen.query_one("#price", Input).value = "0.44"
        await until(pilot, lambda: "3 left out" in text_of(pilot))
        await until(pilot, lambda: size == SMALL or "left out: " in text_of(pilot))
        screen.query_one("GridEditor #cost").focus()
        await until(pilot, lambda: pilot.app.focused is screen.query_one("GridEditor #cost"))
        await pilot.press("end")  # what does not fit is scrolled to by keys
        await until(pilot, lambda: "  5  seqs 8 · batched 256" in text_of(pilot))
        await pilot.press("home")
        await until(pilot, lambda: "launches" in text_of(pilot))
        shown = text_of(pilot) + screen.query_one("#rest", Static).render().plain
        assert "launches" in shown
        assert "$" in shown
        assert "vLLM refuses it" in shown


async def test_mistakes_are_lines_and_nothing_starts(tmp_path: Path, model: str, keeper: Keeper) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        screen.query_one("#model", Input).value = "/no/such[/bold]model"
        screen.query_one("#blocks", Input).value = "x"
        await until(pilot, lambda: "blocks: 'x' is not a whole number" in text_of(pilot))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "blocks" in said(pilot))
        screen.query_one("#blocks", Input).value = "2"
        await until(pilot, lambda: "/no/such[/bold]model" in screen.query_one("#preview", Static).render().plain)
    assert keeper.started == []


async def test_number_keys_type_in_a_field_and_change_screens_outside(tmp_path: Path, model: str) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        field = screen.query_one("#blocks", Input)
        field.focus()
        await pilot.press("end", "1")
        assert field.value == "21"
        assert pilot.app.screen is screen
        await pilot.press("escape", "1")
        await until(pilot, lambda: pilot.app.current_mode == "servers")
        await pilot.press("3")
        field.focus()
        await pilot.press("f4")
        await until(pilot, lambda: pilot.app.current_mode == "sessions")


async def test_workloads_are_added_edited_and_removed_by_keys(tmp_path: Path, model: str) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        listed = screen.query_one("#workloads", OptionList)
        listed.focus()
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, WorkloadForm))
        form = pilot.app.screen
        await pilot.press("end", *"[/x]", "down")
        form.query_one("#dataset", Input).value = "sharegpt"
        await pilot.press("enter")
        assert "path: sharegpt needs" in text_of(pilot)
        form.query_one("#path", Input).value = "/no/such.json"
        await pilot.press("down", "enter")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert listed.option_count == 3
        added = screen.query_one(GridEditor).form.workloads[2]
        assert (added.name, added.dataset, added.path) == ("prefix-2[/x]", "sharegpt", "/no/such.json")
        await pilot.press("delete")
        await until(pilot, lambda: listed.option_count == 2)
        await until(pilot, lambda: "default + 3 candidates" in text_of(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, WorkloadForm))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)


@pytest.mark.usefixtures("model")
async def test_start_asks_once_with_the_cost_and_starts(
    tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Installation("/venv/bin/vllm", "/venv/bin/python", ("/venv/bin/vllm",), "/venv/bin", "0.32.0")
    monkeypatch.setattr(plan_editing, "find_vllm", lambda *_: found)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        screen.query_one("#price", Input).value = "0.44"
        screen.query_one("#name", Input).value = "awq [/bold] [core.py:58]"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        for words in ("10 launches", "55 min", "$0.4"):
            assert words in text_of(pilot)
        await pilot.press("y")
        await until(pilot, lambda: len(keeper.started) == 1)
        await until(pilot, lambda: "waiting" in text_of(pilot))
    with open_reader(tmp_path / "data" / "llmtune.db") as reader:
        session = reader.session(keeper.started[0])
    assert len(session.candidates) == 4
    assert session.plan["budget"]["gpu_price_per_hour"] == 0.44


@pytest.mark.usefixtures("model", "keeper")
async def test_a_vllm_that_is_not_there_is_a_line(tmp_path: Path) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        screen.query_one("#vllm", Input).value = str(tmp_path / "none" / "vllm")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: "it did not start: " in said(pilot))
        assert screen.query_one(GridEditor).display
    with open_reader(tmp_path / "data" / "llmtune.db") as reader:
        assert reader.sessions() == []


async def test_a_plan_file_is_saved_and_opened(tmp_path: Path, model: str) -> None:
    target = tmp_path / "mine.toml"
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        screen.query_one("#name", Input).value = "another"
        await until(pilot, lambda: screen._preview.plan is not None and screen._preview.plan.name == "another")
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskLine))
        pilot.app.screen.query_one(Input).value = str(target)
        await pilot.press("enter")
        await until(pilot, target.exists)
        screen.query_one("#name", Input).value = "changed"
        for path, words in ((target.with_name("none.toml"), "there is no such plan file"), (target, "fills the form")):
            await pilot.press("ctrl+o")
            await until(pilot, lambda: isinstance(pilot.app.screen, AskLine))
            pilot.app.screen.query_one(Input).value = str(path)
            await pilot.press("enter")
            await until(pilot, lambda words=words: pilot.app.screen is screen and words in said(pilot))
        assert screen.query_one("#name", Input).value == "another"


async def test_the_editor_opens_with_the_sessions_plan_and_esc_returns(tmp_path: Path, keeper: Keeper) -> None:
    session_in(tmp_path / "data", finished=False)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "measuring")
        await pilot.press("e")
        await until(pilot, lambda: "max-num-batched-tokens=2048" in text_of(pilot))
        assert screen.query_one("#model", Input).value == "org/Model-[/bold]-7B"
        await pilot.press("escape")
        await until(pilot, lambda: "measuring" in text_of(pilot))


async def test_many_candidates_scroll_and_the_lines_below_stay(tmp_path: Path, keeper: Keeper) -> None:
    number = session_in(tmp_path / "data", finished=False)
    many = [{"index": at, "label": f"{at}", "settings": {"max-num-seqs": at} if at else {}} for at in range(40)]
    with open_writer(tmp_path / "data" / "llmtune.db") as writer:
        writer.update(SessionRecord, number, candidates=many)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "· waiting")
        assert screen.query_one("#first", ResultsTable).row_count == 40
        shown = text_of(pilot)
        assert "spent" in shown
        assert "vllm serve" in shown
