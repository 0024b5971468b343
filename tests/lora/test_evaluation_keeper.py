"""Evaluations under real keepers, with a stand-in for the script: what is killed, and by whom, and what goes on."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.keeper import journal
from engine.preflight.ours import read_ours
from engine.processes.process import is_alive, marked
from engine.signature import SignatureBroken
from lora.evaluation_keeper import EvaluationKeeper
from lora.evaluations.evaluating import LOG, BasisChanged, start_evaluation, stop_evaluation
from lora.evaluations.evaluation import EvaluationSettings
from lora.process.process_life import JOB
from lora.records import LoraError, Message
from store.database import open_reader, open_writer
from store.location import database_file
from store.records import EvaluationRecord
from tests.lora.evaluation_world import EvaluationWorld
from tests.lora.full_writer import Full


@pytest.fixture
def world(tmp_path: Path) -> EvaluationWorld:
    return EvaluationWorld(tmp_path)


def test_one_that_ends_well_is_kept_under_its_own_number(world: EvaluationWorld) -> None:
    number = world.begin()
    job = world.over(number)
    assert (job.state, job.name, job.done, job.records) == ("done", "made@1", 6, 6)
    (found,) = world.results()
    assert (found.id, found.adapter_id, found.data_hash) == (number, job.adapter_id, job.data_hash)
    assert (found.records, found.answer_tokens, found.base_loss) == (6, 24, 2.0)
    assert found.adapter_loss == pytest.approx((4 * 6 + 1.5) / 24)
    assert found.high is not None
    assert found.high < 0
    assert found.settings["left_out"] == 1
    assert [answer["prompt"] for answer in found.answers] == ["one", "two", "three"]
    assert (found.answers[0]["base"], found.answers[0]["adapter"]) == ("ab", "<<A>>"), "nothing that moves a cursor"
    assert found.raw["records"][0] == [0, 4, 8.0, 4.0]
    assert found.environment["dtype"] == "float32"
    assert (job.message or "").startswith("the adapter answers its data better than its base")
    assert "1 records are left out" in world.said(number)
    assert world.progress(number).stat().st_mode & 0o077 == 0
    assert not marked(job.marker)
    told = json.loads((world.place / job.path / JOB).read_text())
    assert (told["max_length"], told["quantization"], told["model"]) == (77, "none", str(world.model))
    with pytest.raises(LoraError, match="is done: `llmtune lora attach eval:1`"):
        start_evaluation(world.place, number, world.environ)


def test_one_that_is_killed_goes_on_with_what_is_not_yet_measured(world: EvaluationWorld) -> None:
    count = world.folder / "count"
    number = world.begin(at={"4": "kill"}, once=str(world.folder / "once"), count=str(count))
    job = world.over(number)
    assert job.state == "failed"
    assert "the evaluation died after 4 of 6 records: it was killed (SIGKILL)" in (job.message or "")
    assert f"`llmtune lora resume eval:{number}` goes on with it" in (job.message or "")
    assert not world.results()
    start_evaluation(world.place, number, world.environ)
    assert world.over(number).state == "done"
    assert count.read_text().split() == ["0", "1", "2", "3", "4", "5"], "none was measured twice"
    (found,) = world.results()
    assert found.records == 6
    assert "resumed after 4 of 6 records" in world.said(number)


def test_a_keeper_that_is_killed_leaves_a_process_that_the_next_one_follows(world: EvaluationWorld) -> None:
    number = world.begin(pace=0.3)
    process = world.process(number)
    world.until(number, lambda one: (one.done or 0) >= 2)
    world.kill_keeper(number)
    assert is_alive(process)
    (seen,) = read_ours(world.place).lora
    assert (seen.kind, seen.pids, seen.kept) == ("evaluation", (process.pid,), False)
    assert process.pid not in read_ours(world.place).strangers
    start_evaluation(world.place, number, world.environ)
    assert world.process(number) == process
    assert world.over(number).state == "done"
    assert "follows the evaluation that went on alone" in world.said(number)
    assert len(world.results()) == 1


def test_one_that_ended_alone_is_kept_by_the_next_keeper(world: EvaluationWorld) -> None:
    number = world.begin(pace=0.2)
    process = world.process(number)
    world.kill_keeper(number)
    world.until(number, lambda one: not is_alive(process))
    assert not world.results()
    world.play(at={"0": "crash"})
    start_evaluation(world.place, number, world.environ)
    assert world.over(number).state == "done", "nothing was measured anew"
    assert len(world.results()) == 1


def test_a_result_that_is_kept_already_is_not_kept_twice(world: EvaluationWorld) -> None:
    """Its keeper died between the result and the row."""
    number = world.begin()
    world.over(number)
    with open_writer(database_file(world.place)) as writer:
        writer.update(type(world.job(number)), number, state="running", message=None)
    start_evaluation(world.place, number, world.environ)
    assert world.over(number).state == "done"
    assert [found.id for found in world.results()] == [number]


def test_what_another_machine_measured_is_measured_anew(world: EvaluationWorld) -> None:
    count = world.folder / "count"
    number = world.begin(at={"2": "crash"}, count=str(count), device="NVIDIA H200")
    assert "RuntimeError: the GPU has fallen off the bus" in (world.over(number).message or "")
    world.play(count=str(count))
    start_evaluation(world.place, number, world.environ)
    job = world.over(number)
    assert (job.state, job.done) == ("done", 6)
    assert count.read_text().split() == ["0", "1", "0", "1", "2", "3", "4", "5"]
    assert "measures anew" in world.said(number)
    assert world.results()[0].environment["device"] == "processor"


def test_stop_keeps_what_is_measured_and_resume_goes_on(world: EvaluationWorld) -> None:
    count = world.folder / "count"
    number = world.begin(pace=0.3, count=str(count))
    process = world.process(number)
    world.until(number, lambda one: (one.done or 0) >= 2)
    assert stop_evaluation(world.place, number) == "stopping; what is measured stays"
    job = world.over(number)
    assert job.state == "stopped"
    assert "stopped, as asked, after" in (job.message or "")
    assert not is_alive(process)
    start_evaluation(world.place, number, world.environ)
    assert world.over(number).state == "done"
    assert sorted(set(count.read_text().split())) == [str(index) for index in range(6)]
    assert len(count.read_text().split()) <= 7, "but for one in hand, none was measured twice"


def test_what_a_dead_keeper_left_is_stopped_without_one(world: EvaluationWorld) -> None:
    number = world.begin(pace=0.3)
    process = world.process(number)
    world.until(number, lambda one: (one.done or 0) >= 1)
    world.kill_keeper(number)
    assert "1 process ended" in stop_evaluation(world.place, number)
    assert not is_alive(process)
    assert world.job(number).state == "stopped"
    assert "stopped, as asked" in world.said(number)
    with pytest.raises(LoraError, match="evaluation 1 is stopped: there is nothing to stop"):
        stop_evaluation(world.place, number)


def test_a_deaf_one_ends_at_the_second_word(world: EvaluationWorld) -> None:
    number = world.begin(at={"2": "hang"})
    process = world.process(number)
    world.until(number, lambda one: (one.done or 0) >= 2)
    stop_evaluation(world.place, number)
    assert "ends at once" in stop_evaluation(world.place, number)
    assert world.over(number).state == "stopped"
    assert not is_alive(process)


def test_both_killed_at_once_loses_nothing_that_was_measured(world: EvaluationWorld) -> None:
    number = world.begin(pace=0.3)
    process = world.process(number)
    world.until(number, lambda one: (one.done or 0) >= 3)
    world.kill_keeper(number)
    os.kill(process.pid, signal.SIGKILL)
    measured = len(world.progress(number).read_text().splitlines()) - 2
    assert measured >= 3
    start_evaluation(world.place, number, world.environ)
    assert world.over(number).state == "done"
    assert f"resumed after {measured} of 6 records" in world.said(number)


def test_a_loss_that_is_no_number_fails_it(world: EvaluationWorld) -> None:
    number = world.begin(at={"2": "nan"})
    job = world.over(number)
    assert (job.state, job.message) == ("failed", "the loss of the adapter on record 3 is no number")
    assert world.events(number)[-1].level == "error"


def test_lines_that_are_none_change_nothing(world: EvaluationWorld) -> None:
    number = world.begin(at={"3": "garbage"})
    assert world.over(number).state == "done"
    assert world.results()[0].records == 6


def test_nothing_that_fits_is_one_line(world: EvaluationWorld) -> None:
    number = world.begin(records=0)
    job = world.over(number)
    assert job.state == "failed"
    assert "can be used: all are longer than 77 tokens" in (job.message or "")


def test_a_python_that_lacks_what_is_needed_says_so(world: EvaluationWorld) -> None:
    Path(world.python.python).write_text("#!/bin/sh\necho 'ModuleNotFoundError: No module named peft' >&2\nexit 4\n")
    job = world.over(number := world.begin())
    assert job.state == "failed"
    assert "No module named peft" in (job.message or "")
    assert "No module named peft" in (world.place / job.path / LOG).read_text()
    Path(world.python.python).unlink()
    assert "does not start" in (world.over(world.begin()).message or "")
    assert not marked(world.job(number).marker)


def test_adapter_base_and_data_must_be_what_they_were(world: EvaluationWorld) -> None:
    number = world.begin(at={"3": "crash"})
    world.over(number)
    kept = world.file.read_text()
    world.file.write_text(kept + "\n")
    with pytest.raises(BasisChanged, match="has changed since evaluation 1 began"):
        start_evaluation(world.place, number, world.environ)
    world.file.unlink()
    with pytest.raises(BasisChanged, match="cannot be read"):
        start_evaluation(world.place, number, world.environ)
    world.file.write_text(kept)
    (world.model / "model.safetensors").write_bytes(b"other")
    with pytest.raises(BasisChanged, match="not what it was since evaluation 1 began"):
        start_evaluation(world.place, number, world.environ)
    (world.place / world.adapter().path / "adapter_model.safetensors").write_bytes(b"other")
    with pytest.raises(SignatureBroken):
        start_evaluation(world.place, number, world.environ)
    with pytest.raises(SignatureBroken):
        world.made()
    assert world.job(number).state == "failed"


def test_an_evaluation_has_one_keeper(world: EvaluationWorld) -> None:
    number = world.begin(pace=0.3)
    with pytest.raises(LoraError, match="has a keeper already"):
        start_evaluation(world.place, number, world.environ)
    stop_evaluation(world.place, number)
    world.over(number)


def test_a_number_is_free_of_results_that_came_without_work(world: EvaluationWorld) -> None:
    adapter = world.adapter().id
    assert adapter is not None
    with open_writer(database_file(world.place)) as writer:
        writer.insert(EvaluationRecord(adapter, "2026-11-30T10:00:00.000Z", "ab", 1, 4, 2.0, 1.0, -1.0, 1))
    number = world.begin()
    world.over(number)
    assert [found.id for found in world.results()] == [1, 2]


async def test_a_result_waits_for_a_store_that_is_full(world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.play(pace=0.3)
    monkeypatch.setenv("LLMTUNE_STAND_IN", world.environ["LLMTUNE_STAND_IN"])
    monkeypatch.setattr(journal, "TRY_AGAIN_S", 0.05)
    number, database = world.made(), database_file(world.place)
    with open_writer(database) as real, open_reader(database) as reader:
        writer = Full(real)
        keeper = EvaluationKeeper(world.place, reader.evaluation_job(number), writer, reader)  # type: ignore[arg-type]
        keeper.take_over()
        working = asyncio.create_task(keeper.work())

        async def until(is_so: Callable[[dict[str, Any]], bool]) -> None:
            async with asyncio.timeout(30):
                while not is_so(await keeper.commands()["status"]({})):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

        await until(lambda _: (reader.evaluation_job(number).done or 0) >= 1)
        writer.full = True
        await until(lambda status: status["blocked"] is not None)
        await until(lambda status: status["at"] == "after 6 of 6 records")
        assert not reader.evaluations()
        writer.full = False
        async with asyncio.timeout(15):
            await working
        assert reader.evaluation_job(number).state == "done"
        assert [found.id for found in reader.evaluations()] == [number]


def test_questions_of_ones_own_are_asked(world: EvaluationWorld) -> None:
    number = world.made(EvaluationSettings(prompts=((Message("user", "Why?"),),)))
    start_evaluation(world.place, number, world.environ)
    world.over(number)
    assert [answer["prompt"] for answer in world.results()[0].answers] == ["Why?"]
