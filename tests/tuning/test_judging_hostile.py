"""Sessions as no sweep makes them: whatever the rows hold, something finite and consistent is said of them."""

import json
import math
import random
from dataclasses import asdict, replace
from typing import Any, get_args

import pytest

from store.records import LaunchRecord, RunRecord
from tests.tuning.examples import at
from tests.tuning.played_sessions import Played, Truth, plan_of, play
from tuning.judged import Word
from tuning.judgement.deciding import ADDED
from tuning.judgement.judging import judge
from tuning.results import session_result

VALUES: tuple[Any, ...] = (None, 0.0, -1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 1.0)
LIMITS = ("chat.p99_ttft_ms <= 500", "error_rate == 0", "preemptions <= 3", "goodput_per_s >= 1", "p99_ttft_ms >= 1")
REASONS = (
    "did not start: out of memory",
    "skipped, as asked",
    "not tried: as seqs 100",
    "judged: worse",
    "",
    "\x1b[31m",
)
RUN_STATES = ("done", "rejected", "failed", "abandoned", "running")
LAUNCH_STATES = ("done", "failed", "abandoned", "ready", "starting")


def broken(seed: int) -> Played:
    draw = random.Random(seed)
    names = ("chat", "prefix")[: draw.randint(1, 2)]
    metric: Any = draw.choice(("total_tok_per_s", "p99_ttft_ms", "preemptions", "energy_j_per_token"))
    if draw.random() < 0.3:
        metric = {names[-1]: metric}
    plan = plan_of(
        draw.randint(1, 5),
        draw.randint(1, 5),
        names,
        limits=tuple(draw.sample(LIMITS, draw.randint(0, 3))),
        metric=metric,
    )
    truth = Truth(
        {1: draw.choice((0.0, 0.1, -0.1))}, draw.choice((0.0, 1e-12, 0.01, 0.5)), draw.choice((0.0, 0.01)), p99=490
    )
    played = play(plan, truth, seed, kept=draw.random() < 0.7, leaving=draw.random() < 0.5)
    hostile = draw.choice((0.0, 0.05, 0.5))

    def run(each: RunRecord) -> RunRecord:
        if draw.random() < hostile:
            each = replace(each, metrics={name: draw.choice(VALUES) for name in each.metrics})
        if draw.random() < 0.1:
            each = replace(each, state=draw.choice(RUN_STATES))  # type: ignore[arg-type]
        return each

    def launch(each: LaunchRecord) -> LaunchRecord:
        return replace(each, state=draw.choice(LAUNCH_STATES)) if draw.random() < 0.05 else each  # type: ignore[arg-type]

    raw = dict(played.session.raw)
    if draw.random() < 0.5:
        out = {str(draw.randint(1, 6)): draw.choice(REASONS) for _ in range(draw.randint(1, 3))}
        raw["out"] = {**raw.get("out", {}), **out}
    if draw.random() < 0.3:
        raw[ADDED] = {str(draw.randint(1, 7)): draw.randint(0, 6)}
    if draw.random() < 0.2:
        raw.pop("blocks")
    lost = draw.choice((0.0, 0.1, 0.4))
    return replace(
        played,
        session=replace(played.session, raw=raw, state=draw.choice(("running", "done", "stopped", "failed"))),
        launches=[launch(each) for each in played.launches if draw.random() >= lost / 4],
        runs=[run(each) for each in played.runs if draw.random() >= lost],
    )


@pytest.mark.parametrize("seed", range(120))
def test_whatever_the_rows_hold(seed: int) -> None:
    played = broken(seed)
    found = played.judge()
    launches, runs = list(played.launches), list(played.runs)
    random.Random(seed).shuffle(launches)
    random.Random(seed + 1).shuffle(runs)
    assert judge(played.session, played.plan, launches, runs) == found

    assert found.sentence.endswith(".")
    assert all(
        "\n" not in line and "\x1b" not in line for line in (found.sentence, *found.notes, *found.leaves.values())
    )
    indices = {each["index"] for each in played.session.candidates}
    assert set(found.leaves) <= indices - {0}
    for one in found.workloads.values():
        assert set(one.candidates) == indices
        assert one.blocks <= len(found.blocks)
        assert all(each.verdict in get_args(Word) for each in one.candidates.values())
    if found.winner is not None:
        winner = [one.candidates[found.winner] for one in found.workloads.values()]
        assert "better" in {each.verdict for each in winner}
        assert "worse" not in {each.verdict for each in winner}
        assert all(limit.verdict and limit.verdict.state == "holds" for each in winner for limit in each.limits)
    json.dumps(asdict(found), allow_nan=False)
    result = session_result(played.session, played.launches, played.runs, at(100_000))
    shown = [asdict(effect) for each in result.results for effect in each.effects.values()]
    json.dumps(shown, allow_nan=False)
