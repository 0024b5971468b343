from collections import Counter
from itertools import product

import pytest

from tests.tuning.examples import plan, prefix_workload, random_workload
from tuning.records import Cell
from tuning.scheduling.schedule import block_cells, launch_runs
from tuning.scheduling.seeds import RUNS_PER_LAUNCH, retry_seed, run_seed, uniform

SESSIONS = range(200)
# Drawn once and kept: a session that is resumed by another Python must find its own order and seeds again.
ORDER = [5, 4, 0, 2, 1, 3]
SEEDS = [601290935, 710614664, 819938393]
UNIFORM = 0.8631214723338365
TWO = plan(workloads=(random_workload(warmup=2, repeats=3), prefix_workload(warmup=1, repeats=2)))


def test_a_block_launches_the_baseline_and_each_candidate_once() -> None:
    for seed, block in product(SESSIONS, range(3)):
        cells = block_cells(seed, block, [1, 2, 5])
        assert sorted(cell.candidate for cell in cells) == [0, 1, 2, 5]
        assert [cell.position for cell in cells] == [0, 1, 2, 3]
        assert {(cell.block, cell.slot) for cell in cells} == {(block, 0)}
        assert cells == block_cells(seed, block, [0, 5, 2, 1, 1])


def test_the_order_is_drawn_anew_for_each_block_and_session() -> None:
    orders = {
        tuple(cell.candidate for cell in block_cells(seed, block, [1, 2])) for seed in SESSIONS for block in (0, 1)
    }
    assert len(orders) == 6
    same = [block_cells(seed, 0, [1, 2, 3]) == _renumbered(block_cells(seed, 1, [1, 2, 3]), 0) for seed in SESSIONS]
    assert 0 < sum(same) < 30


def _renumbered(cells: list[Cell], block: int) -> list[Cell]:
    return [Cell(block, cell.position, cell.candidate, cell.slot) for cell in cells]


def test_every_place_is_as_likely_for_every_candidate() -> None:
    places = Counter((cell.candidate, cell.position) for seed in range(3000) for cell in block_cells(seed, 0, [1, 2]))
    for count in places.values():  # of 3000 with a third each: 1000, standard deviation 26
        assert 870 < count < 1130


def test_several_baseline_launches_are_spread_over_the_block() -> None:
    for seed in SESSIONS:
        cells = block_cells(seed, 0, range(1, 10), baseline_launches=3)
        own = [cell for cell in cells if cell.candidate == 0]
        assert [cell.slot for cell in own] == [0, 1, 2]
        assert len(cells) == 12
    drawn = [uniform(seed, "order", 0, 0) for seed in SESSIONS]
    assert 0.4 < sum(drawn) / len(drawn) < 0.6


def test_adding_or_dropping_a_candidate_leaves_the_order_of_the_others() -> None:
    for seed in SESSIONS:
        full = [cell.candidate for cell in block_cells(seed, 2, [1, 2, 3, 4])]
        fewer = [cell.candidate for cell in block_cells(seed, 2, [1, 2, 4])]
        assert [index for index in full if index != 3] == fewer


def test_a_block_without_a_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="baseline"):
        block_cells(1, 0, [1], baseline_launches=0)


def test_warm_ups_come_first_and_workloads_are_not_mixed() -> None:
    runs = [(run.workload, run.kind, run.repeat) for run in launch_runs(TWO, 7, 0)]
    assert runs == [
        ("chat", "warmup", 0),
        ("chat", "warmup", 1),
        ("prefix", "warmup", 0),
        ("chat", "measured", 0),
        ("chat", "measured", 1),
        ("chat", "measured", 2),
        ("prefix", "measured", 0),
        ("prefix", "measured", 1),
    ]


def test_no_two_runs_of_a_session_share_a_seed_nor_do_their_retries() -> None:
    for session in SESSIONS:
        seeds = [run.seed for block in range(6) for run in launch_runs(TWO, session, block)]
        seeds += [retry_seed(seed) for seed in seeds]
        assert len(set(seeds)) == len(seeds)
        assert all(0 <= seed < 2**31 for seed in seeds)


def test_sessions_do_not_share_their_seeds() -> None:
    firsts = {launch_runs(TWO, session, 0)[0].seed for session in SESSIONS}
    assert len(firsts) == len(SESSIONS)


def test_seeds_of_the_whole_range_are_distinct() -> None:
    block = (2**30 // RUNS_PER_LAUNCH) - 1
    seeds = [run_seed(3, block, index) for index in range(RUNS_PER_LAUNCH)]
    seeds += [run_seed(3, 0, index) for index in range(RUNS_PER_LAUNCH)]
    assert len(set(seeds)) == 2 * RUNS_PER_LAUNCH
    for beyond in ((0, RUNS_PER_LAUNCH), (block + 1, 0), (0, -1), (-1, 0)):
        with pytest.raises(ValueError, match="no seed"):
            run_seed(3, *beyond)


def test_draws_are_the_same_in_every_version_of_python() -> None:
    assert [cell.candidate for cell in block_cells(7, 0, [1, 2, 3, 4, 5])] == ORDER
    assert [run.seed for run in launch_runs(TWO, 7, 1)][:3] == SEEDS
    assert uniform(7, "order", 0, 1) == pytest.approx(UNIFORM, abs=1e-15)


def test_more_runs_than_seeds_are_refused() -> None:
    many = plan(workloads=tuple(random_workload(str(index), warmup=100, repeats=100) for index in range(6)))
    with pytest.raises(ValueError, match="at most 1024 runs, not 1200"):
        launch_runs(many, 1, 0)
