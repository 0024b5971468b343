"""What it costs to read a session of 6,000 runs, forty metrics each: verdicts alone, and the whole table. Printed.

make bench ARGS="-k judging"
"""

import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from store.records import RunRecord
from tests.tuning.examples import at
from tests.tuning.played_sessions import Truth, plan_of, play
from tuning.records import RUN_METRICS
from tuning.results import session_result

pytestmark = pytest.mark.benchmark


def seconds(work: Callable[[], object], rounds: int = 5) -> tuple[float, float]:
    """CPU of this thread, the first time (bars are worked out, scipy is loaded) and the least of the others."""
    took = []
    for _ in range(1 + rounds):
        begun = time.thread_time()
        work()
        took.append(time.thread_time() - begun)
    return took[0], min(took[1:])


@pytest.mark.parametrize(("k", "blocks", "repeats"), [(12, 4, 3), (12, 6, 30), (40, 6, 12)])
def test_a_session_is_read(k: int, blocks: int, repeats: int, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of(k, blocks, ("chat", "prefix"), limits=("p99_ttft_ms <= 500", "error_rate == 0"))
    plan = replace(plan, workloads=tuple(replace(each, repeats=repeats) for each in plan.workloads))
    draw = random.Random(1)

    def whole(each: RunRecord) -> RunRecord:
        return replace(each, metrics={**{name: draw.lognormvariate(3, 0.1) for name in RUN_METRICS}, **each.metrics})

    played = play(plan, Truth({1: 0.03}), kept=False, leaving=False).with_runs(whole)
    first, judged = seconds(played.judge)
    _, read = seconds(lambda: session_result(played.session, played.launches, played.runs, at(100_000)))
    with capsys.disabled():
        print(
            f"\n{len(played.runs):,} runs of {k} candidates in {blocks} blocks: verdicts {1000 * judged:.0f} ms "
            f"(first {1000 * first:.0f}), with the table of all metrics {1000 * read:.0f} ms"
        )
