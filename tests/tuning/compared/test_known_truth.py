"""Sessions of which the truth is known: copies rarely differ, real changes are seen."""

import numpy as np

from tests.benchmarks.simulated_pairs import Pairs, simulate


def test_copies_of_a_session_rarely_differ() -> None:
    """At most 5 % of pairs; the bounds leave room for so few of them."""
    several = simulate(Pairs("", (0.03, 0.0, -0.03, 0.01)), 120, np.random.default_rng(1))
    assert several.share(several.false) <= 10
    one = simulate(Pairs("", (0.03,)), 300, np.random.default_rng(2))
    assert one.share(one.false) <= 8
    assert one.share(one.level) <= 8


def test_what_moves_whole_blocks_makes_no_difference_of_levels() -> None:
    """Each launch counting for itself, three times as many pairs differ as there should."""
    found = simulate(Pairs("", (0.0,) * 8, block_sd=0.01, leaves=False), 150, np.random.default_rng(3))
    assert found.share(found.level) <= 9
    assert found.share(found.level_by_launch) >= 11
    assert found.share(found.false) <= 9


def test_an_effect_that_changed_is_seen() -> None:
    found = simulate(Pairs("", (0.0, 0.0, 0.0), changes=(0.10,), leaves=False), 60, np.random.default_rng(4))
    assert found.seen >= 0.9 * found.changed
