"""The same kills on a real vLLM, some while it loads. It takes half an hour: `make test-long`."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.records import Installation
from tests.faults.world import OF_A_SERVER, STRUCK_AT_MOST, World, until
from tuning.plans.plan_file import read_plan
from tuning.sessions import create_session, start_keeper

PLAN = """
name = "real faults"
model = "{model}"

[server]
enforce-eager = true
max-model-len = 512
gpu-memory-utilization = 0.1
max-num-seqs = 8

[server.env]
HF_HUB_OFFLINE = "1"

[grid]
max-num-seqs = [2, 4]

[[workload]]
name = "chat"
dataset = "random"
input_len = 32
output_len = 16
requests = 16
max_concurrency = 4
warmup = 1
repeats = 3

[decide]
blocks = 4
metric = "requests_failed"   # always 0, of which nothing can be said: nobody leaves
"""
BLOCKS, CONFIGURATIONS = 4, 3
KILLS = 20
# Each of these comes at least once at each of the two moments.
TARGETS = ("keeper", "api", "core", "bench", "worker")
MOMENTS = ("load", "run")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data", {})
    yield made
    made.clean_up()


def at(world: World, moment: str, draw: random.Random) -> None:
    """Wait for the moment: somewhere in a load, or in a run."""
    state = {"load": "starting", "run": "ready"}[moment]

    def reached() -> bool:
        resume_if_needed(world)
        if world.session().state == "done":
            return True
        now = next((server for server in world.servers() if server.state in ("starting", "ready")), None)
        running = any(run.state == "running" for run in world.runs())
        return now is not None and now.state == state and (moment == "load" or running)

    until(reached, 240, f"the sweep is in a {moment}")
    time.sleep(draw.uniform(0.0, 15.0 if moment == "load" else 3.0))


def resume_if_needed(world: World) -> None:
    if not world.kept() and world.session().state != "done":
        world.llmtune("resume", str(world.session_id))


@pytest.mark.vllm
@pytest.mark.long
def test_kills_on_a_real_server(world: World, tmp_path: Path, installation: Installation, model_dir: Path) -> None:
    draw = random.Random(20)
    text = PLAN.format(model=model_dir)
    world.session_id = create_session(world.data_dir, read_plan(text), text, installation)
    start_keeper(world.data_dir, world.session_id, {}, os.environ)
    wanted = [(target, moment) for moment in MOMENTS for target in TARGETS] * (KILLS // 10)
    draw.shuffle(wanted)
    done: Counter[str] = Counter()
    struck: Counter[tuple[int, int]] = Counter()
    while wanted and world.session().state != "done":
        target, moment = wanted.pop()
        at(world, moment, draw)
        cell = world.cell()
        tree = world.tree()
        if target not in tree or (target in OF_A_SERVER and struck[cell] >= STRUCK_AT_MOST):
            wanted.insert(0, (target, moment))  # not there yet, or enough for this launch: later
            time.sleep(1)
            continue
        os.kill(tree[target].pid, signal.SIGKILL)
        done[f"{target} in {moment}"] += 1
        struck[cell] += target in OF_A_SERVER
    deadline = time.monotonic() + 1200
    while world.session().state != "done":
        assert time.monotonic() < deadline, f"the sweep does not end: {world.session()}"
        resume_if_needed(world)
        time.sleep(1)
    until(lambda: not world.kept(), 60, "the keeper has ended")
    print("kills:", dict(sorted(done.items())), "launches:", len(world.servers()))
    assert done.total() >= KILLS
    assert [len(block) for block in world.session().raw["blocks"]] == [CONFIGURATIONS] * BLOCKS
    assert world.counted() == dict.fromkeys(world.planned(), 1)
    world.nothing_left()
