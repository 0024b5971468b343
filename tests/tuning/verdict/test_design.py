import pytest

from tuning.scheduling.schedule import block_cells
from tuning.scheduling.seeds import uniform
from tuning.verdict.design import baseline_launches, launches_in_block


def test_the_baseline_is_launched_more_often_for_more_candidates() -> None:
    assert [baseline_launches(k) for k in (1, 2, 3, 6, 7, 27)] == [1, 1, 2, 2, 3, 3]
    assert launches_in_block(12) == 15
    with pytest.raises(ValueError):
        baseline_launches(0)


@pytest.mark.parametrize("candidates", [1, 2, 3, 6, 7, 12])
def test_the_schedule_orders_a_block_as_the_method_says(candidates: int) -> None:
    """Candidates at u, baseline launch i of r at (i + u)/r: one in each part of the block."""
    r = baseline_launches(candidates)
    for block in range(20):
        places = {(g, 0): uniform(7, "order", block, g) for g in range(1, candidates + 1)}
        places |= {(0, i): (i + uniform(7, "order", block, 0)) / r for i in range(r)}
        cells = block_cells(7, block, range(1, candidates + 1), r)
        assert [(cell.candidate, cell.slot) for cell in cells] == sorted(places, key=lambda key: places[key])


def test_no_launch_has_a_place_of_its_own() -> None:
    """One baseline launch: anywhere in the block equally often."""
    places = [next(c.position for c in block_cells(3, b, [1, 2], 1) if c.candidate == 0) for b in range(600)]
    assert all(150 < places.count(position) < 250 for position in range(3))
