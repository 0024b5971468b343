"""A sweep does not try what would fail as another candidate did."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from engine.records import LaunchFailed
from store.clock import utc_now
from store.database import open_reader, open_writer
from store.records import LaunchRecord, SessionRecord
from tests.tuning.sweep_world import World
from tuning.plans.grid import candidate_label
from tuning.records import Candidate, Cell
from tuning.sweeping.controls import Controls

SETTINGS = ({}, *({"gpu-memory-utilization": value} for value in (0.5, 0.6, 0.7, 0.9)))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    path = tmp_path / "llmtune.db"
    points = [Candidate(at, candidate_label(each), dict(each)) for at, each in enumerate(SETTINGS)]
    with open_writer(path) as writer:
        session = SessionRecord("foregone", "waiting", "", {}, [asdict(point) for point in points], 7, utc_now())
        session_id = writer.insert(session)
        with open_reader(path) as reader:
            yield World(writer, reader, session_id)


def fails_below(world: World, utilization: float, failure_class: str) -> None:
    def small(cell: Cell) -> None:
        if SETTINGS[cell.candidate].get("gpu-memory-utilization", 0.92) <= utilization:
            raise LaunchFailed("it is too small", failure_class, 1)

    world.before_launch = small


async def test_points_that_would_fail_alike_are_left_out_with_the_reason(world: World) -> None:
    fails_below(world, 0.7, "kv_cache_too_small")
    await world.sweep(Controls()).run()
    tried = {candidate for _, candidate, _ in world.launched}
    out = world.reader.session(world.session_id).raw["out"]
    assert set(out) == {"1", "2", "3"}
    foregone = {int(index) for index, why in out.items() if why.startswith("not tried")}
    assert foregone == {1, 2, 3} - tried
    assert all("kv_cache_too_small" in out[str(index)] for index in foregone)
    assert {0, 3, 4} <= tried  # nothing that failed was smaller, so each of them had its chance
    assert any("not tried" in event.text for event in world.reader.events(session_id=world.session_id))


async def test_the_largest_that_fails_rules_the_smaller_out(world: World) -> None:
    fails_below(world, 0.7, "kv_cache_too_small")
    session = world.reader.session(world.session_id)
    blocks = [[asdict(Cell(0, at, candidate, 0)) for at, candidate in enumerate((0, 3, 1, 2, 4))]]
    world.writer.update(SessionRecord, world.session_id, raw={**session.raw, "blocks": blocks})
    await world.sweep(Controls()).run()
    assert [candidate for block, candidate, _ in world.launched if block == 0] == [0, 3, 4]


async def test_a_failure_that_says_nothing_of_the_point_rules_nothing_out(world: World) -> None:
    fails_below(world, 0.7, "unknown")
    await world.sweep(Controls()).run()
    assert {candidate for _, candidate, _ in world.launched} == {0, 1, 2, 3, 4}


async def test_a_candidate_that_has_served_is_not_ruled_out(world: World) -> None:
    fails_below(world, 0.7, "kv_cache_too_small")
    for candidate in (1, 2):
        served = LaunchRecord(world.session_id, 0, 0, candidate, 0, 1, "done", ready_at=utc_now())
        world.writer.insert(replace(served, block=9))
    await world.sweep(Controls()).run()
    assert {candidate for _, candidate, _ in world.launched} == {0, 1, 2, 3, 4}


async def test_what_a_person_left_out_rules_nothing_out(world: World) -> None:
    failed = LaunchRecord(world.session_id, 0, 0, 3, 0, 1, "failed", failure_class="kv_cache_too_small")
    world.writer.insert(replace(failed, block=9))
    session = world.reader.session(world.session_id)
    world.writer.update(SessionRecord, world.session_id, raw={**session.raw, "out": {"3": "skipped, as asked"}})
    await world.sweep(Controls()).run()
    assert {candidate for _, candidate, _ in world.launched} == {0, 1, 2, 4}
