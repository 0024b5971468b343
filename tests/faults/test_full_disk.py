"""A disk that is really full in the midst of a sweep: nothing is lost, and it goes on when space returns."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.installation import find_vllm
from engine.keeper.client import call
from tests.faults.stand_in_vllm import make_installation, make_model
from tests.faults.world import PLAN, World, until
from tuning.plan_file import read_plan
from tuning.sessions import create_session, start_keeper


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB of its own, mounted for the test."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(path: Path) -> None:
    """Take all the space there is."""
    with path.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"\0" * 4096)
        except OSError:
            return


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
        planned = {(0, candidate, "chat", repeat) for candidate in range(4) for repeat in range(3)}
        assert world.counted() == dict.fromkeys(planned, 1)
        until(lambda: not world.kept(), 10, "the keeper has ended")
        world.nothing_left()
    finally:
        world.clean_up()
