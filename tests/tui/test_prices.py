"""The price of certainty in the editor: what each number of blocks finds and costs, chosen there; calibration."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input

from engine.records import Installation
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import SessionRecord
from tests.tui.judged_session import keep, winner_plan, with_winner
from tests.tui.test_tune import LARGE, SMALL, Keeper, app_on, keeper, model, on_tune, said, text_of, until
from tests.tuning.played_sessions import Truth, play
from tui.screens import plan_editing
from tui.tune.noise_source import NoiseSource, worth_reading
from tui.tune.plan_form import form_of
from tui.tune.plan_preview import Basis, noise_line, preview
from tui.tune.price_text import HEADS, found_text, price_line
from tui.tune.tune_source import TuneSource
from tui.widgets.confirm import Confirm
from tui.widgets.price_table import PriceTable
from tuning.judgement.calibration import calibration
from tuning.verdict.outlook import Price

__all__ = ("keeper", "model")  # fixtures

PRICE = Price(4, 0.0234, 36.53, 60, 1.0148, 1.6667, 2.03, 3.333)


def test_a_price_is_one_line_under_its_heads() -> None:
    line = price_line(4, PRICE, 0.03, True)
    assert line == "● 4       ✓ 2.3 %   37, ≤ 60      61 min, ≤ 1 h 40 min      $2.03, ≤ $3.33"
    assert len(line) <= 76
    for head, cell in (("finds", "2.3 %"), ("launches", "37"), ("time", "61"), ("money", "$2")):
        assert HEADS.index(head) == line.index(cell), head
    assert price_line(4, PRICE, 0.02, False).startswith("○ 4         2.3 %")
    assert price_line(4, None, 0.02, False) == "○ 4       …"


def test_what_does_not_differ_is_said_once_and_what_is_not_known_not_at_all() -> None:
    sure = Price(2, 0.12, 30.0, 30, 0.5, 0.5, None, None)
    assert price_line(2, sure, 0.02, False) == "○ 2         12 %    30            30 min"
    assert found_text(replace(sure, smallest_effect=None), 0.02) == "  –"
    assert found_text(replace(sure, smallest_effect=float("nan")), 0.02) == "  –"


# where the noise is from


def test_noise_is_that_of_an_aa_session_first(tmp_path: Path) -> None:
    plan = winner_plan()
    keep(tmp_path, with_winner())
    keep(tmp_path, play(calibration(plan), Truth(launch_sd=0.004), seed=5, state="done"))
    keep(tmp_path, play(replace(plan, model="org/other"), Truth(launch_sd=0.02), seed=6, state="stopped"))
    source = NoiseSource()
    with open_reader(database_file(tmp_path)) as reader:
        counts = [len(source.read(reader)) for _ in range(4)]  # one session a look
        known = source.read(reader)
        assert source.read(reader) is known
    assert counts == [1, 2, 3, 3]
    assert [(one.session_id, one.calibration) for one in known] == [(3, False), (2, True), (1, False)]
    found = preview(form_of(plan), plan, Basis(noise=known))
    assert found.noise is None or found.noise.measured  # the model is a hub name: nothing stands in the way
    assert found.mistakes or "as in A/A session 2" in noise_line(found)


def test_sessions_of_another_machine_say_nothing(tmp_path: Path) -> None:
    keep(tmp_path, with_winner())
    keep(tmp_path, with_winner())
    with open_writer(database_file(tmp_path)) as writer:
        writer.update(SessionRecord, 1, environment={"vllm": "0.25.1", "model_hash": "a"})
        writer.update(SessionRecord, 2, environment={"vllm": "0.33.0", "model_hash": "b"})
    with open_reader(database_file(tmp_path)) as reader:
        both = reader.sessions(("done",))
        assert [one.id for one in worth_reading(both, both[1])] == [2]
        assert worth_reading([], None) == []
        alike = [replace(one, environment={"vllm": "0.33.0", "model_hash": str(one.id)}) for one in both]
        alike[0] = replace(alike[0], plan={**alike[0].plan, "model": "org/other"})
        assert len(worth_reading(alike, alike[1])) == 2  # another model is no other machine


def test_the_editor_need_not_wait_for_noise(tmp_path: Path) -> None:
    keep(tmp_path, with_winner())
    source = TuneSource(lambda _: False)
    with open_reader(database_file(tmp_path)) as reader:
        looks = [source.read(reader, None, "2026-11-30T12:00:00.000Z") for _ in range(3)]
    assert [len(look.basis.noise) for look in looks] == [0, 1, 1]
    assert looks[1].basis == looks[2].basis


# screens


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_blocks_are_chosen_where_their_price_stands(tmp_path: Path, size: tuple[int, int]) -> None:
    async with app_on(tmp_path).run_test(size=size) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        screen.query_one("#price", Input).value = "2.5"
        await until(pilot, lambda: "○ 6         2." in text_of(pilot) and "$" in text_of(pilot))
        shown = text_of(pilot)
        assert "noise of a launch assumed 1 %: C measures it (12 launches" in shown
        assert "● 2" in shown
        assert all(f"○ {blocks} " in shown for blocks in (3, 4, 5, 6))  # all of them fit
        prices = screen.query_one(PriceTable)
        prices.focus()
        await until(pilot, lambda: pilot.app.focused is prices)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: screen.query_one("#blocks", Input).value == "4")
        await until(pilot, lambda: "● 4" in text_of(pilot) and "○ 2" in text_of(pilot))
        await until(pilot, lambda: "≤ 20 launches" in text_of(pilot))
        screen.query_one("#blocks", Input).value = "8"
        await until(pilot, lambda: "● 8" in text_of(pilot) or size == SMALL)


@pytest.mark.usefixtures("model")
async def test_a_wrong_limit_or_effect_is_a_line(tmp_path: Path) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        screen.query_one("#limits", Input).value = "chat.p99_ttft <= 500"
        await until(pilot, lambda: "it cannot start like this" in text_of(pilot))
        await until(pilot, lambda: "finds" not in text_of(pilot))
        screen.query_one("#limits", Input).value = "chat.p99_ttft_ms <= 500, error_rate == 0"
        screen.query_one("#effect", Input).value = "x"
        await until(pilot, lambda: "smallest effect: 'x' is not a number above 0" in text_of(pilot))
        screen.query_one("#effect", Input).value = "3"
        await until(pilot, lambda: "default + 3 candidates" in text_of(pilot))
        plan = screen._preview.plan
        assert plan is not None
        assert plan.decide.limits == ("chat.p99_ttft_ms <= 500", "error_rate == 0")
        assert plan.decide.smallest_effect == 0.03


@pytest.mark.usefixtures("model")
async def test_one_key_calibrates(tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Installation("/venv/bin/vllm", "/venv/bin/python", ("/venv/bin/vllm",), "/venv/bin", "0.32.0")
    monkeypatch.setattr(plan_editing, "find_vllm", lambda *_: found)
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        await on_tune(pilot, "default + 3 candidates")
        assert "C calibrate" in text_of(pilot)
        await pilot.press("C")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        assert "Measure the default against itself: 12 launches, about" in text_of(pilot)
        await pilot.press("n")
        assert keeper.started == []
        await pilot.press("C")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: keeper.started == [1])
    with open_reader(database_file(tmp_path / "data")) as reader:
        session = reader.session(1)
    assert session.plan["calibrate"] is True
    assert session.plan["decide"]["blocks"] == 6
    assert [one["settings"] for one in session.candidates] == [{}, {}]


@pytest.mark.usefixtures("model", "keeper")
async def test_what_is_no_plan_cannot_be_calibrated(tmp_path: Path) -> None:
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        screen.query_one("#blocks", Input).value = "x"
        await until(pilot, lambda: "it cannot start like this" in text_of(pilot))
        await pilot.press("C")
        await until(pilot, lambda: "blocks: 'x'" in said(pilot))


async def test_after_a_calibration_the_editor_holds_the_plan_itself(tmp_path: Path) -> None:
    keep(tmp_path / "data", play(calibration(winner_plan()), Truth(launch_sd=0.004), seed=5, state="done"))
    async with app_on(tmp_path).run_test(size=SMALL) as pilot:
        screen = await on_tune(pilot, "default + 3 candidates")
        assert screen.query_one("#name", Input).value == "knobs"
        assert screen.query_one("#blocks", Input).value == "4"
        await until(pilot, lambda: "as in A/A session 1" in text_of(pilot))


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_an_aa_session_is_shown_as_one(tmp_path: Path, size: tuple[int, int]) -> None:
    keep(tmp_path / "data", play(calibration(winner_plan()), Truth(launch_sd=0.004), seed=5, state="done"))
    async with app_on(tmp_path, session=1).run_test(size=size) as pilot:
        await on_tune(pilot, "default again")
        shown = text_of(pilot)
        assert "noise of total tok/s: run 0." in shown
        assert "baseline" in shown
