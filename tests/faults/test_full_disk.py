"""A disk that is really full in the midst of a sweep: nothing is lost, and it goes on when space returns."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.keeper.client import call
from engine.launch.installation import find_vllm
from store.clock import format_utc
from store.database import open_reader, open_writer
from store.errors import StoreFull
from tests.faults.filling import fill
from tests.faults.stand_in_vllm import make_installation, make_model
from tests.faults.world import PLAN, World, until
from tests.store.examples import a_sample, a_server
from tuning.plans.plan_file import read_plan
from tuning.sessions import create_session, start_keeper


@pytest.mark.faults
def test_a_sweep_waits_for_space_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    _, environ = make_installation(tmp_path / "vllm")
    world = World(small_disk / "data", environ)
    text = PLAN.format(model=make_model(tmp_path / "model"), blocks=1)
    installation = find_vllm(str(tmp_path / "vllm" / "bin" / "vllm"), {**os.environ, **environ})
    try:
        world.session_id = create_session(world.data_dir, read_plan(text), text, installation)
        start_keeper(world.data_dir, world.session_id, {}, {**os.environ, **environ})
        until(lambda: len(world.counted()) >= 2, 30, "two runs are done")
        filler = small_disk / "filler"
        fill(filler)
        before = world.counted()

        def blocked() -> str | None:
            answer = call(world.data_dir, "session", world.session_id, "status")
            said: str | None = answer["blocked"]
            return said

        until(blocked, 30, "the keeper says that the store takes nothing")
        assert "full" in (blocked() or "") or "space" in (blocked() or "")
        assert world.kept()
        assert before.items() <= world.counted().items()
        filler.unlink()
        until(lambda: world.session().state == "done", 60, "it goes on to its end")
        assert world.counted() == dict.fromkeys(world.planned(), 1)
        until(lambda: not world.kept(), 10, "the keeper has ended")
        world.nothing_left()
    finally:
        world.clean_up()


@pytest.mark.faults
def test_thinning_on_a_full_disk_loses_nothing_and_goes_on_when_there_is_space(small_disk: Path) -> None:
    database = small_disk / "data" / "llmtune.db"
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    begin = now - timedelta(hours=8)
    with open_writer(database) as writer, open_reader(database) as reader:
        server_id = writer.insert(a_server())
        old = [
            a_sample(at=format_utc(begin + timedelta(seconds=at)), server_id=server_id, raw={"filler": "x" * 2000})
            for at in range(100)
        ]
        for sample in old:  # as a keeper writes them: the WAL stays short
            writer.insert_samples([sample])
        before = reader.samples(server_id=server_id)
        fill(small_disk / "filler")
        with pytest.raises(StoreFull, match="No space is left"):
            writer.thin(now)
        assert reader.samples(server_id=server_id) == before
        (small_disk / "filler").unlink()
        while writer.thin(now):
            pass
        assert [sample.raw["thinned"]["samples"] for sample in reader.samples(server_id=server_id)] == [10] * 10
