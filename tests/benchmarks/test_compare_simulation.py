"""How often two sessions are said to differ: pairs with known truth.

    make bench ARGS="-k compare_simulation"

prints a table in Markdown. LLMTUNE_SIMULATED_SESSIONS (2,000) pairs are played for each row.
"""

import os

import numpy as np
import pytest

from tests.benchmarks.simulated_pairs import Pairs, simulate

pytestmark = pytest.mark.benchmark

PAIRS = int(os.environ.get("LLMTUNE_SIMULATED_SESSIONS", "2000"))
SEED = int(os.environ.get("LLMTUNE_SIMULATION_SEED", "1"))
PROMISE_PERC = 5.0

NONE = (0.0,) * 12
MIXED = (0.01, 0.02, 0.03, 0.05, -0.03, -0.03, -0.03, -0.01, -0.01, 0.0, 0.0, 0.0)
SETTINGS = (
    Pairs("12 candidates, no effects", NONE),
    Pairs("12, effects of -3 to +5 %", MIXED),
    Pairs("12, effects, nobody leaves", MIXED, leaves=False),
    Pairs("12, effects, blocks 1 %", MIXED, block_sd=0.01),
    Pairs("12, effects, launches 2 %", MIXED, launch_sd=0.02),
    Pairs("1 candidate, no effect", NONE[:1]),
    Pairs("1, +3 %", (0.03,)),
    Pairs("3, +3, +1, 0 %", (0.03, 0.01, 0.0)),
    Pairs("3, 2 blocks", NONE[:3], blocks=2),
    Pairs("3, B three times as noisy", NONE[:3], noisier=3.0),
    Pairs("3, one changes by 5 %", NONE[:3], changes=(0.05,)),
    Pairs("3, one changes by 5 %, nobody leaves", NONE[:3], changes=(0.05,), leaves=False),
    Pairs("3, one changes by 10 %", NONE[:3], changes=(0.10,)),
)


def test_sessions_that_are_the_same_are_rarely_told_to_differ() -> None:
    print("\n| setting | an effect falsely differs | levels falsely differ, by block | by launch | changes seen |")
    print("| --- | ---: | ---: | ---: | ---: |")
    worst = 0.0
    for at, setting in enumerate(SETTINGS):
        found = simulate(setting, PAIRS, np.random.default_rng((SEED, at)))
        worst = max(worst, found.share(found.false))
        seen = f"{100 * found.seen / found.changed:.0f} %" if found.changed else "–"
        shares = (found.false, found.level, found.level_by_launch)
        print(f"| {setting.name} | {' | '.join(f'{found.share(one):.1f} %' for one in shares)} | {seen} |", flush=True)
    assert worst <= PROMISE_PERC + 2 * 100 * (0.05 * 0.95 / PAIRS) ** 0.5
