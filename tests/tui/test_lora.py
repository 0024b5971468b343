"""The LoRA screen, driven by keys at 80x24 and 140x45."""

import asyncio
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from engine.keeper.client import KeeperGone
from lora.memory_free import Holder, MemoryFree
from lora.records import LoraError
from store.database import open_reader
from store.location import database_file
from store.writer import Writer
from tests.lora.made_adapters import tiny_factors, write_adapter, write_model
from tests.tui.conftest import fed, screen_text, server
from tests.tui.hostile import TEXTS
from tests.tui.lora_world import BASE, SETTINGS, a_dataset, a_training, an_adapter, fill
from tests.tui.test_hostile import page
from tests.tui.test_lora_parts import QWEN
from tui import errands
from tui.app import LlmtuneApp, parting_words
from tui.lora import deeds as lora_deeds
from tui.lora.form import Wanted
from tui.messages import GoingOn
from tui.screens import lora, lora_adapters, lora_form, lora_training
from tui.screens.help import HelpScreen
from tui.screens.lora import LoraScreen
from tui.screens.lora_adapter import AdapterScreen
from tui.screens.lora_dataset import DatasetScreen
from tui.screens.lora_form import TrainingFormScreen
from tui.screens.lora_import import ImportAdapterScreen
from tui.screens.lora_prepare import PrepareScreen
from tui.screens.lora_training import TrainingScreen
from tui.screens.tune import TuneScreen
from tui.widgets.choose import Choose
from tui.widgets.confirm import Confirm
from tui.widgets.copy import CopyPanel
from tui.widgets.training_form import TrainingFields

SMALL, LARGE = (80, 24), (140, 45)
SIZES = (SMALL, LARGE)
FREE = MemoryFree("GPU 0 (NVIDIA H200)", True, 131.0, 140.4)
HELD = MemoryFree("GPU 0", True, 1.5, 140.4, (Holder("pid 7 (server 1 qwen) 130.7 GiB", 130.7, 7, 1),))


@dataclass
class Deeds:
    """Stands where trainings and commands would be begun."""

    alive: bool = True
    error: Exception | None = None
    heard: list[tuple[Any, ...]] = field(default_factory=list)

    def note(self, *what: Any) -> Any:
        if self.error is not None:
            raise self.error
        self.heard.append(what)
        return what[-1]

    def start(self, data_dir: Path, wanted: Wanted, vllm: str | None) -> int:
        self.note("start", wanted)
        return 2

    def stop(self, data_dir: Path, number: int) -> str:
        self.note("stop", number)
        return f"training {number} stopped at step 120"

    def resume(self, data_dir: Path, number: int) -> str:
        self.note("resume", number)
        return f"training {number} goes on"


@dataclass
class Command:
    """Stands for a process of ours."""

    status: int | None = None

    def poll(self) -> int | None:
        return self.status


@dataclass
class Commands:
    begun: list[list[str]] = field(default_factory=list)
    process: Command = field(default_factory=Command)
    says: str = "done as asked\n"

    def begin(self, data_dir: Path, what: str, words: list[str], vllm: str | None) -> errands.Errand:
        self.begun.append(words)
        log = data_dir / "errand.log"
        log.write_text(self.says)
        return errands.Errand(what, self.process, log)  # type: ignore[arg-type]


@pytest.fixture
def deeds(monkeypatch: pytest.MonkeyPatch) -> Deeds:
    made = Deeds()
    for module in (lora, lora_training):
        monkeypatch.setattr(module, "is_running", lambda *_: made.alive)
    monkeypatch.setattr(lora_deeds, "start_training", made.start)
    monkeypatch.setattr(lora_deeds, "stop_training", made.stop)
    monkeypatch.setattr(lora_deeds, "resume_training", made.resume)
    monkeypatch.setattr(lora_form, "memory_free", lambda *_: FREE)
    return made


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands()
    monkeypatch.setattr(errands, "begin", made.begin)
    return made


@pytest.fixture
def world(writer: Writer, data_dir: Path, deeds: Deeds) -> Path:
    fill(writer, data_dir)
    return data_dir


async def on_lora(pilot: Pilot[Any], said: str = "support-qv") -> None:
    await pilot.press("5")
    await fed(pilot, lambda: isinstance(pilot.app.screen, LoraScreen) and said in text(pilot))


def text(pilot: Pilot[Any]) -> str:
    assert isinstance(pilot.app, LlmtuneApp)
    return screen_text(pilot.app)


async def shows(pilot: Pilot[Any], *words: str) -> None:
    await fed(pilot, lambda: all(word in text(pilot) for word in words))


async def is_on(pilot: Pilot[Any], screen: type) -> Any:
    await fed(pilot, lambda: isinstance(pilot.app.screen, screen))
    return pilot.app.screen


# the lists


@pytest.mark.parametrize("size", SIZES)
async def test_all_three_lists_and_the_live_loss_are_seen_at_once(
    app: LlmtuneApp, world: Path, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot)
        await shows(pilot, "▶ running", "120/540", "● qwen-lora", "imported@1", "1,440", "loss  training")
        shown = page(pilot)
        assert "about 10:30 left" in shown
        assert ("tokens/s  1,637" in shown) == (size == LARGE)
        assert "5 LoRA" in shown.splitlines()[0]


async def test_a_new_step_is_drawn(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await shows(pilot, "120/540")
        with (world / "trainings" / "2-support-qv" / "progress.jsonl").open("a") as file:
            file.write('{"kind": "step", "step": 121, "loss": 0.987, "seconds": 181.5}\n')
        await shows(pilot, "121/540", "0.987")


async def test_the_cursor_goes_through_all_lists(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("j", "j")
        await shows(pilot, "imported from /elsewhere/a")
        await pilot.press("j")
        await shows(pilot, "served by qwen-lora", "147 of 160", "▸2 (1.300)")
        await pilot.press("j", "j")
        await shows(pilot, "with nothing yet: n begins a training")
        await pilot.press("j")
        await shows(pilot, "31 duplicates", "support-qv (running)")
        await pilot.press("j", "k", "k", "k")
        await shows(pilot, "served by qwen-lora")
        await pilot.press("tab")
        await shows(pilot, "31 duplicates")


async def test_the_filter_leaves_what_has_the_words(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("slash", *"imported", "enter")
        await shows(pilot, "imported from /elsewhere/a")
        assert "support-qv@2" not in text(pilot)
        await pilot.press("escape")
        await shows(pilot, "support-qv@2", "120/540")


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_place_says_how_to_begin(
    app: LlmtuneApp, writer: Writer, deeds: Deeds, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot, "no training yet: n begins one")
        assert "no data set yet: p makes one" in text(pilot)
        await pilot.press("enter", "x", "R", "y")
        assert isinstance(app.screen, LoraScreen)
        await shows(pilot, "n train", "p prepare", "i import", "? help")
        writer.insert(a_dataset())
        await shows(pilot, "support", "with nothing yet: n begins a training")
        await pilot.press("n")
        await is_on(pilot, TrainingFormScreen)


async def test_every_key_and_number_stands_in_the_help(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=(80, 120)) as pilot:
        await on_lora(pilot)
        for screen in (None, "n", "p", "i"):
            if screen is not None:
                await pilot.press(screen)
                await fed(pilot)
                await pilot.press("escape")
            main = app.screen
            await pilot.press("question_mark")
            await is_on(pilot, HelpScreen)
            shown = text(pilot)
            for number in main.LEGEND:  # type: ignore[attr-defined]
                assert number.name in shown
            for words in ("leave; what runs", "LoRA"):
                assert words in shown
            await pilot.press("escape", *(["escape"] if screen is not None else []))
            await is_on(pilot, LoraScreen)


async def test_the_palette_offers_what_is_possible(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        titles = {command.title for command in app.screen.commands()}  # type: ignore[attr-defined]
        assert any(title.startswith("The form of a new training") for title in titles)
        assert any(title.startswith("Stop the chosen training") for title in titles)
        assert not any(title.startswith("Go on with") for title in titles)


# trainings


@pytest.mark.parametrize("size", SIZES)
async def test_a_training_opens_as_its_curves(app: LlmtuneApp, world: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot)
        await pilot.press("enter")
        await is_on(pilot, TrainingScreen)
        await shows(pilot, "learning rate", "NVIDIA H200", "loss  training")
        page(pilot)
        await pilot.press("escape")
        await is_on(pilot, LoraScreen)


async def test_a_training_is_stopped_after_a_question(app: LlmtuneApp, world: Path, deeds: Deeds) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("x")
        await is_on(pilot, Confirm)
        await pilot.press("n")
        assert not deeds.heard
        await pilot.press("x", "y")
        await shows(pilot, "training 2 stopped at step 120")
        assert deeds.heard == [("stop", 2)]


async def test_a_training_whose_keeper_is_gone_goes_on_with_one_key(app: LlmtuneApp, world: Path, deeds: Deeds) -> None:
    deeds.alive = False
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await shows(pilot, "! interrupted", "R resume")
        await pilot.press("R")
        await shows(pilot, "training 2 goes on")
        deeds.error = KeeperGone("no keeper runs for training 2")
        await pilot.press("R")
        await shows(pilot, "✗ no keeper runs for training 2")


async def test_why_a_training_failed_is_said(app: LlmtuneApp, writer: Writer, deeds: Deeds) -> None:
    writer.insert(a_dataset())
    writer.insert(a_training(state="failed", message="the loss became NaN at step 7: lower the learning rate [/x]"))
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot, "✗ failed")
        await shows(pilot, "the loss became NaN at step 7: lower the learning rate [/x]")


async def test_leaving_says_that_a_training_goes_on() -> None:
    going_on = GoingOn(trainings=(a_training(id=2),))
    assert parting_words(going_on, lambda kind, _: kind == "training").startswith("training 2 goes on")
    assert "llmtune lora resume 2" in parting_words(going_on, lambda *_: False)


# adapters


async def to_adapter(pilot: Pilot[Any]) -> None:
    await on_lora(pilot)
    await pilot.press("j", "j", "j")
    await shows(pilot, "served by qwen-lora")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (("s", "enter"), ["lora", "serve", "support-qv@2", "--", "--gpu-memory-utilization", "0.7"]),
        (("l",), ["lora", "serve", "support-qv@2", "--server", "1"]),
        (("e",), ["lora", "eval", "support-qv@2"]),
        (("b", "y"), ["lora", "rollback", "support-qv", "--to", "2"]),
    ],
)
async def test_what_is_done_with_an_adapter_is_a_command(
    app: LlmtuneApp,
    world: Path,
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    keys: tuple[str, ...],
    words: list[str],
) -> None:
    monkeypatch.setattr(lora_adapters, "SERVE_FLAGS", dict.fromkeys((True, False), "--gpu-memory-utilization 0.7"))
    async with app.run_test(size=SMALL) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter")
        await is_on(pilot, Choose)
        page(pilot)
        await pilot.press(*keys)
        await fed(pilot, lambda: bool(commands.begun))
        assert commands.begun == [words]
        await shows(pilot, "◐ ", "goes on when you leave")
        commands.process.status = 0
        await shows(pilot, "✔ done as asked")
        assert "◐ " not in text(pilot)


async def test_a_command_that_fails_says_what_it_was_told(app: LlmtuneApp, world: Path, commands: Commands) -> None:
    commands.process.status, commands.says = (
        1,
        "llmtune: no memory [/x] \x1b[31m\nllmtune: /d goes: name one with --data-dir\n",
    )
    async with app.run_test(size=SMALL) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter", "e")
        await shows(pilot, "✗ evaluating support-qv@2: no memory [/x]")


async def test_tuning_with_an_adapter_opens_the_editor(
    app: LlmtuneApp, world: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str | None] = []
    monkeypatch.setattr(TuneScreen, "open_plan", lambda _, path: opened.append(path))
    commands.process.status = 0
    async with app.run_test(size=SMALL) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter", "t")
        await is_on(pilot, TuneScreen)
        await fed(pilot, lambda: bool(opened))
        plan = str(world / "plans" / "support-qv-2.toml")
        assert commands.begun == [["lora", "price", "support-qv@2", "--out", plan]]
        assert opened == [plan]


@pytest.mark.parametrize("size", SIZES)
async def test_an_adapter_opens_with_what_vllm_makes_of_it(app: LlmtuneApp, world: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await to_adapter(pilot)
        await pilot.press("enter", "v")
        await is_on(pilot, AdapterScreen)
        await shows(pilot, "cannot be served: its folder")
        await pilot.press("end")
        await shows(pilot, "Within 30 days, [/b] yes.")
        page(pilot)


async def test_the_command_that_goes_on_with_it_is_copied(app: LlmtuneApp, world: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        for steps, words in ((0, "lora attach 2"), (3, "lora serve support-qv@2"), (3, f"lora train 1 --model {BASE}")):
            await pilot.press(*"j" * steps)
            await fed(pilot)
            await pilot.press("y")
            await is_on(pilot, CopyPanel)
            assert f"llmtune {words} --data-dir" in " ".join(text(pilot).split())
            await pilot.press("escape")


# data sets


@pytest.mark.parametrize("size", SIZES)
async def test_a_data_set_opens_as_its_report(app: LlmtuneApp, world: Path, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await to_adapter(pilot)
        await pilot.press("j", "j", "j", "enter")
        await is_on(pilot, DatasetScreen)
        await shows(pilot, "data set 1 support", "432,000", "31 duplicates")
        page(pilot)


# the form of a training


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "qwen2.5-7b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(QWEN))
    return folder


async def on_form(pilot: Pilot[Any], model: Path) -> TrainingFields:
    await on_lora(pilot)
    await pilot.press("n")
    await is_on(pilot, TrainingFormScreen)
    fields = pilot.app.screen.query_one(TrainingFields)
    await fed(pilot, lambda: bool(fields.form.dataset))
    fields.put("model", str(model))
    return fields


@pytest.mark.parametrize("size", SIZES)
async def test_what_a_training_comes_to_stands_below_its_form(
    app: LlmtuneApp, world: Path, model: Path, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        fields = await on_form(pilot, model)
        assert fields.form.targets == "q_proj, v_proj"  # as the chosen training has them
        await shows(pilot, "5,046,272 parameters in 56 layers", "20.2 MB", "it fits", "540: 1,440 conversations")
        page(pilot)
        await pilot.press("ctrl+t")
        await shows(pilot, "in 196 layers")
        await pilot.press("ctrl+t")
        await shows(pilot, "5,046,272 parameters in 56 layers")
        await pilot.press("escape", "t")
        await shows(pilot, "in 196 layers")
        fields.put("r", "0")
        await shows(pilot, "✗ rank r: '0' is no whole number of at least 1")
        await pilot.press("S")
        assert isinstance(app.screen, TrainingFormScreen)


async def test_a_training_begins_after_one_question(app: LlmtuneApp, world: Path, model: Path, deeds: Deeds) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        await shows(pilot, "it fits")
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        assert "540 steps" in text(pilot)
        await pilot.press("y")
        await is_on(pilot, TrainingScreen)
        assert [what for what, *_ in deeds.heard] == ["start"]
        begun = deeds.heard[0][1]
        assert isinstance(begun, Wanted)
        assert (begun.name, begun.settings.alpha, begun.settings.targets) == ("support-qv", 16, ("q_proj", "v_proj"))
        await pilot.press("escape")
        await is_on(pilot, LoraScreen)


async def test_what_was_typed_last_is_what_begins(app: LlmtuneApp, world: Path, model: Path, deeds: Deeds) -> None:
    """Also where it is not counted yet when the key is pressed."""
    async with app.run_test(size=SMALL) as pilot:
        fields = await on_form(pilot, model)
        await shows(pilot, "it fits")
        fields.put("r", "8")
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await is_on(pilot, TrainingScreen)
        assert deeds.heard[0][1].settings.r == 8


async def test_a_training_that_does_not_begin_says_why(app: LlmtuneApp, world: Path, model: Path, deeds: Deeds) -> None:
    deeds.error = LoraError("dataset 1 has changed since it was prepared: prepare it again")
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        await shows(pilot, "it fits")
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await shows(pilot, "✗ it did not begin: dataset 1 has changed")
        assert isinstance(app.screen, TrainingFormScreen)


async def test_a_server_that_holds_the_memory_is_named_and_stopped(
    app: LlmtuneApp, world: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []

    def stop(data_dir: Path, number: int) -> str:
        stopped.append(number)
        monkeypatch.setattr(lora_form, "memory_free", lambda *_: FREE)
        return "server 1 is stopped"

    monkeypatch.setattr(lora_form, "memory_free", lambda *_: HELD)
    monkeypatch.setattr("engine.hand_servers.stop_server", stop)
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        await shows(pilot, "GiB too little", "pid 7 (server 1 qwen) 130.7 GiB", "^g stop server")
        await pilot.press("ctrl+g", "y")
        await shows(pilot, "it fits")
        assert stopped == [1]


async def test_a_driver_that_hangs_blocks_nothing(
    app: LlmtuneApp, world: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    answer = threading.Event()

    def hang(*_: Any) -> MemoryFree:
        asked.append(time.monotonic())
        answer.wait(30)
        return FREE

    monkeypatch.setattr(lora_form, "memory_free", hang)
    monkeypatch.setattr(lora_form, "ASK_S", 0.05)
    async with app.run_test(size=SMALL) as pilot:
        await on_form(pilot, model)
        longest, before = 0.0, time.monotonic()
        for _ in range(50):
            await asyncio.sleep(0.01)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
        assert longest < 10
        await shows(pilot, "asking what is free", "5,046,272")
        assert len(asked) == 1
        answer.set()
        await shows(pilot, "it fits")


async def test_another_data_set_is_one_key_away(app: LlmtuneApp, world: Path, model: Path) -> None:
    async with app.run_test(size=SMALL) as pilot:
        fields = await on_form(pilot, model)
        assert fields.form.dataset == "support"
        await pilot.press("ctrl+n")
        assert fields.form.dataset == "tiny"
        await shows(pilot, "6: 9 conversations")


# preparing


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    lines = [json.dumps({"instruction": f"Question {at} [/x]?", "output": f"Answer {at}."}) for at in range(20)]
    file = tmp_path / "conversations.jsonl"
    file.write_text("\n".join([*lines, lines[0], "{broken"]) + "\n")
    return file


@pytest.mark.parametrize("size", SIZES)
async def test_a_file_is_reported_on_before_it_is_kept(
    app: LlmtuneApp, world: Path, conversations: Path, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size) as pilot:
        await on_lora(pilot)
        await pilot.press("p")
        screen = await is_on(pilot, PrepareScreen)
        await pilot.press("ctrl+s")
        await shows(pilot, "look at it first: enter")
        screen.query_one("#l-file", Input).value = str(conversations)
        await pilot.press("enter")
        await shows(pilot, "22 records, JSON lines, form alpaca", "18 train, 2 validation", "Question 0 [/x]?")
        page(pilot)
        assert datasets(world) == ["support", "tiny"]
        screen.query_one("#l-share", Input).value = "0.25"
        await pilot.press("ctrl+s")
        await shows(pilot, "look at it first: enter")
        await pilot.press("enter")
        await shows(pilot, "15 train, 5 validation")
        await pilot.press("ctrl+s", "n")
        assert datasets(world) == ["support", "tiny"]
        await pilot.press("ctrl+s", "y")
        await is_on(pilot, LoraScreen)
        await shows(pilot, "conversations is kept as data set 3")
        assert datasets(world) == ["support", "tiny", "conversations"]


@pytest.mark.parametrize(
    ("field_name", "value", "said"),
    [
        ("file", "", "no file is named"),
        ("file", "/not/there.jsonl", "/not/there.jsonl"),
        ("share", "0.9", "held out: 0.9 is no number from 0 to 0.5"),
        ("seed", "x", "seed: x is no number"),
        ("length", "10", "longest counts tokens: name a model"),
        ("name", "a b", "name a b: use letters"),
        ("model", "/not/there", "/not/there"),
    ],
)
async def test_what_cannot_be_prepared_says_why(
    app: LlmtuneApp, world: Path, conversations: Path, field_name: str, value: str, said: str
) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("p")
        screen = await is_on(pilot, PrepareScreen)
        screen.query_one("#l-file", Input).value = str(conversations)
        screen.query_one(f"#l-{field_name}", Input).value = value
        await pilot.press("enter")
        await fed(pilot, lambda: f"✗ {said}" in text(pilot) or ("✗" in text(pilot) and said in text(pilot)))
        await pilot.press("ctrl+s")
        await shows(pilot, "it cannot be kept: see what was found")


def datasets(data_dir: Path) -> list[str]:
    with open_reader(database_file(data_dir)) as reader:
        return [one.name for one in reader.datasets()]


# importing


async def test_an_adapter_is_looked_at_before_it_is_kept(app: LlmtuneApp, world: Path, tmp_path: Path) -> None:
    model = write_model(tmp_path / "base")
    folder = write_adapter(tmp_path / "my adapter", tiny_factors(8), r=8, base_model_name_or_path=str(model))
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("i")
        screen = await is_on(pilot, ImportAdapterScreen)
        screen.query_one("#l-folder", Input).value = str(folder)
        await pilot.press("enter")
        await shows(pilot, "my-adapter: r 8")
        page(pilot)
        await pilot.press("ctrl+s")
        await is_on(pilot, Confirm)
        await pilot.press("y")
        await is_on(pilot, LoraScreen)
        await shows(pilot, "kept as my-adapter@1")
        with open_reader(database_file(world)) as reader:
            assert reader.adapter("my-adapter@1").imported_from == str(folder)


async def test_an_adapter_that_vllm_would_refuse_is_kept_only_knowingly(
    app: LlmtuneApp, world: Path, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "base")
    folder = write_adapter(tmp_path / "dora", tiny_factors(8), r=8, base_model_name_or_path=str(model), use_dora=True)
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot)
        await pilot.press("i")
        screen = await is_on(pilot, ImportAdapterScreen)
        await pilot.press("enter")
        await shows(pilot, "✗ no folder is named")
        screen.query_one("#l-folder", Input).value = str(folder)
        await pilot.press("enter")
        await shows(pilot, "would not serve it as it was trained", "DoRA")
        await pilot.press("ctrl+s")
        await shows(pilot, "keep it anyway")
        await pilot.press("n")
        assert isinstance(app.screen, ImportAdapterScreen)


# hostility


@pytest.mark.parametrize("name", TEXTS)
async def test_no_text_breaks_the_lora_screens(
    name: str, app: LlmtuneApp, writer: Writer, data_dir: Path, deeds: Deeds
) -> None:
    kept = TEXTS[name].encode(errors="replace").decode().replace("\0", "")
    writer.insert(a_dataset(name=kept, model=kept, path=kept[:50], report={"advice": [kept], "learnt": kept}))
    writer.insert(
        a_training(
            name=kept,
            adapter_name=kept,
            base_model=kept,
            path="trainings/1",
            message=kept,
            environment={"gpu": kept},
            settings={**SETTINGS, "targets": [kept]},
        )
    )
    writer.insert(
        an_adapter(name=kept, base_model=kept, path="a/1", notes=kept, gpu=kept, losses={kept: 1.0}, training_id=1)
    )
    writer.insert(server(data_dir, name=kept, model=kept, command=["vllm", "--lora-modules", f"a={data_dir}/a/1"]))
    folder = data_dir / "trainings" / "1"
    folder.mkdir(parents=True)
    (folder / "progress.jsonl").write_bytes(TEXTS[name].encode(errors="surrogateescape") + b"\n")
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await on_lora(pilot, "trainings")
        await shows(pilot, "▶ running")
        steps = (("enter",), ("escape", "x"), ("n", "j"), ("enter",), ("v",), ("escape", "j", "enter"), ("escape", "n"))
        for step in steps:
            await pilot.press(*step)
            await fed(pilot)
            page(pilot)
        await pilot.press("escape", "escape")
        for size in ((120, 40), LARGE):
            await pilot.resize_terminal(*size)
            await fed(pilot)
            page(pilot)


async def test_a_long_history_opens_at_once(app: LlmtuneApp, writer: Writer, deeds: Deeds) -> None:
    with writer.transaction():
        for at in range(300):
            writer.insert(a_dataset(name=f"set-{at}"))
            writer.insert(a_training(name=f"training-{at}", state="done", dataset_id=1, path=f"trainings/{at}"))
            writer.insert(an_adapter(at + 1))
    async with app.run_test(size=SMALL) as pilot:
        await on_lora(pilot, "training-299")
        await pilot.press("end")
        await shows(pilot, "training-0 ")
        await pilot.press("down")
        await shows(pilot, "support-qv@300")
        page(pilot)
