"""Kills at random moments: after each the sweep goes on, and at the end every planned run is there exactly once."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.launch.installation import find_vllm
from tests.faults.stand_in_vllm import make_installation, make_model
from tests.faults.world import OF_A_SERVER, PLAN, STRUCK_AT_MOST, World, until
from tuning.plans.plan_file import read_plan
from tuning.sessions import create_session, start_keeper

TARGETS = ("terminal", "keeper", "bench", "api", "core", "worker")
SECONDS_BETWEEN_KILLS = (0.1, 2.0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    _, environ = make_installation(tmp_path / "vllm")
    made = World(tmp_path / "data", {**environ, "STAND_IN_LOAD_S": "0.3"})
    yield made
    made.clean_up()


def begin(world: World, folder: Path, blocks: int) -> None:
    """A session whose keeper runs."""
    # Of what is always 0 nothing can be said, so that nobody leaves.
    text = PLAN.format(model=make_model(folder / "model"), blocks=blocks) + 'metric = "requests_failed"\n'
    environ = {**os.environ, **world.environ}
    installation = find_vllm(str(folder / "vllm" / "bin" / "vllm"), environ)
    world.session_id = create_session(world.data_dir, read_plan(text), text, installation)
    start_keeper(world.data_dir, world.session_id, {}, environ)


def strike(world: World, draw: random.Random, struck: Counter[tuple[int, int]]) -> str | None:
    """Kill one process that is there; what was done, or None where nothing could be hit. `struck` counts the kills of
    servers by cell."""
    target = draw.choice(TARGETS)
    if target == "terminal":
        terminal = world.follow("attach", str(world.session_id), "--headless")
        time.sleep(draw.uniform(0.1, 0.6))
        how = draw.choice((signal.SIGKILL, signal.SIGHUP, signal.SIGSTOP))
        terminal.send_signal(how)
        if how == signal.SIGSTOP:
            terminal.kill()
        terminal.wait()
        return f"terminal {how.name}"
    cell = world.cell()
    process = world.tree().get(target)
    if process is None or (target in OF_A_SERVER and struck[cell] >= STRUCK_AT_MOST):
        return None
    how = signal.SIGKILL
    if target in ("keeper", "core"):
        how = draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGHUP if target == "keeper" else signal.SIGSTOP))
    try:
        os.kill(process.pid, how)
        if how == signal.SIGSTOP:
            time.sleep(0.5)
            os.kill(process.pid, signal.SIGCONT)
    except ProcessLookupError:
        return None
    struck[cell] += target in OF_A_SERVER
    return f"{target} {how.name}"


def torment(world: World, kills: int, seed: int) -> Counter[str]:
    """Strike until `kills` have hit, having the session resumed whenever nothing keeps it; then let it end."""
    draw = random.Random(seed)
    done: Counter[str] = Counter()
    struck: Counter[tuple[int, int]] = Counter()
    while done.total() < kills and world.session().state != "done":
        time.sleep(draw.uniform(*SECONDS_BETWEEN_KILLS))
        hit = strike(world, draw, struck)
        if hit is not None:
            done[hit] += 1
        resume_if_needed(world)
    deadline = time.monotonic() + 300
    while world.session().state != "done":
        assert time.monotonic() < deadline, f"the sweep does not end: {world.session()}"
        time.sleep(0.2)
        resume_if_needed(world)
    until(lambda: not world.kept(), 20, "the keeper has ended")
    return done


def resume_if_needed(world: World) -> None:
    if not world.kept() and world.session().state != "done":
        world.llmtune("resume", str(world.session_id))


def everything_is_there_once(world: World, blocks: int) -> None:
    raw = world.session().raw
    # three candidates, the default twice
    assert [len(block) for block in raw["blocks"]] == [5] * blocks, f"left out: {raw.get('out')}"
    lost = [run for run in world.runs() if run.kind == "measured" and run.state == "rejected"]
    rejected = f"rejected: {[(run.launch_id, run.reason) for run in lost]}"
    assert world.counted() == dict.fromkeys(world.planned(), 1), rejected
    world.nothing_left()


@pytest.mark.faults
def test_a_short_night_of_kills(world: World, tmp_path: Path) -> None:
    begin(world, tmp_path, blocks=2)
    done = torment(world, kills=16, seed=20261130)
    print("kills:", dict(sorted(done.items())))
    everything_is_there_once(world, blocks=2)


@pytest.mark.faults
@pytest.mark.long
def test_a_long_night_of_kills(world: World, tmp_path: Path) -> None:
    begin(world, tmp_path, blocks=13)
    done = torment(world, kills=100, seed=1)
    print("kills:", dict(sorted(done.items())))
    assert done.total() >= 100
    everything_is_there_once(world, blocks=13)
