"""An evaluation as work on the LoRA screen: how far it is, stopped and gone on with by the keys of a training."""

from pathlib import Path
from typing import Any

import pytest

from store.evaluation_job import EvaluationJobRecord
from store.writer import Writer
from tests.store.examples import an_evaluation_job
from tests.tui.conftest import fed
from tests.tui.lora.pilot import LARGE, SIZES, SMALL, Deeds, is_on, shows, text, to_adapter
from tests.tui.test_hostile import page
from tui.app import LlmtuneApp
from tui.lora.evaluating import job_text, share_text
from tui.lora.standing import Held
from tui.widgets.confirm import Confirm

LIVE = {"live": {"stage": "records", "seconds_left": 40.0}}


@pytest.mark.parametrize(
    ("changes", "held", "share", "said"),
    [
        ({"state": "waiting"}, "left", "◐ …", "evaluation 3: waiting for its keeper; x stops it"),
        ({"raw": {"live": {"stage": "loading"}}}, "kept", "◐ …", "evaluation 3: loading the model; x stops it"),
        ({"done": 12, "records": 48}, "kept", "◐ 25 %", "evaluation 3: 12 of 48 records, 0:40 left; x stops it"),
        ({"done": 9, "records": 0}, "kept", "◐ …", "evaluation 3: 9 of 0 records, 0:40 left; x stops it"),
        ({"done": 12, "records": 48}, "alone", "! 25 %", "computes on, but nobody keeps it: R follows it again"),
        ({"done": 12, "records": 48}, "left", "! 25 %", "has ended unkept, after 12 of 48 records: R goes on"),
        ({"state": "stopped", "done": 12, "records": 48}, "left", "", "was stopped after 12 of 48 records: R goes on"),
        ({"state": "failed", "message": "no memory [/x]"}, "left", "", "evaluation 3 failed: no memory [/x]"),
        ({"state": "done", "done": 48, "records": 48}, "left", "", ""),
    ],
)
def test_where_an_evaluation_stands_is_said(changes: dict[str, Any], held: Held, share: str, said: str) -> None:
    job = an_evaluation_job(**{"id": 3, "state": "running", "done": None, "records": None, "raw": LIVE, **changes})
    assert share_text(job, held) == share
    assert said in job_text(job, held)
    assert bool(job_text(job, held)) == bool(said)


@pytest.mark.parametrize("odd", [float("nan"), 1e300, -5, "x", None, [1]])
def test_no_number_of_an_evaluation_breaks_its_line(odd: Any) -> None:
    job = an_evaluation_job(id=3, state="running", done=odd, records=odd, raw={"live": {"seconds_left": odd}})
    for shown in (share_text(job, "kept"), job_text(job, "kept"), job_text(job, "left")):
        assert "nan" not in shown
        assert shown


@pytest.mark.parametrize("size", SIZES)
async def test_an_evaluation_is_followed_stopped_and_gone_on_with(
    app: LlmtuneApp, world: Path, writer: Writer, deeds: Deeds, size: tuple[int, int]
) -> None:
    number = writer.insert(
        an_evaluation_job(2, name="support-qv@2", state="running", done=40, records=160, raw=LIVE, id=7)
    )
    async with app.run_test(size=size) as pilot:
        await to_adapter(pilot)
        await shows(pilot, "◐ 25 %", "evaluation 7: 40 of 160 records, 0:40 left", "x stop")
        page(pilot)
        writer.update(EvaluationJobRecord, number, done=120)
        await shows(pilot, "◐ 75 %", "evaluation 7: 120 of 160 records")
        assert "loss 1.300 against 2.100 of its base" in text(pilot), "what was measured before stays in sight"
        await pilot.press("x")
        await is_on(pilot, Confirm)
        assert "Stop evaluation 7 of support-qv@2?" in text(pilot)
        await pilot.press("y")
        await shows(pilot, "evaluation 7 stopped")
        writer.update(EvaluationJobRecord, number, state="stopped")
        await shows(pilot, "evaluation 7 was stopped after 120 of 160", "R resume")
        assert "x stop" not in text(pilot)
        await pilot.press("R")
        await shows(pilot, "evaluation 7 goes on")
        assert deeds.heard == [("stop", "evaluation", 7), ("resume", "evaluation", 7)]


async def test_an_evaluation_whose_keeper_is_killed_says_so_without_a_word_of_it(
    app: LlmtuneApp, world: Path, writer: Writer, deeds: Deeds
) -> None:
    """Who is killed writes nothing."""
    writer.insert(an_evaluation_job(2, name="support-qv@2", state="running", done=40, records=160, raw=LIVE, id=7))
    async with app.run_test(size=LARGE) as pilot:
        await to_adapter(pilot)
        await shows(pilot, "◐ 25 %", "0:40 left")
        deeds.held = "alone"
        await shows(pilot, "! 25 %", "evaluation 7 computes on, but nobody keeps it: R", "R resume")
        deeds.held = "left"
        await shows(pilot, "evaluation 7 has ended unkept, after 40 of 160")


async def test_the_keys_of_a_training_do_nothing_with_an_adapter_that_is_not_evaluated(
    app: LlmtuneApp, world: Path, deeds: Deeds
) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await to_adapter(pilot)
        await pilot.press("x", "R")
        await fed(pilot)
        assert not deeds.heard
        assert "x stop" not in text(pilot)
