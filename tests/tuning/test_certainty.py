"""What a session will see and cost, before it starts."""

from dataclasses import replace

import pytest

from tuning.judgement.certainty import (
    ASSUMED_SD,
    ExpectedNoise,
    KnownNoise,
    choices,
    expected_noise,
    fewest_blocks,
    price_of,
    prices,
    seconds_of_launch,
)
from tuning.records import Budget, Candidate, Decide, Plan, Workload

CHAT = Workload("chat", "random", 200, repeats=3, warmup=1)
PREFIX = Workload("prefix", "prefix_repetition", 200, repeats=2, warmup=1)
PLAN = Plan("x", "org/m", (CHAT, PREFIX), budget=Budget(gpu_price_per_hour=3.6))
THREE = [Candidate(at, str(at), {} if at == 0 else {"max-num-seqs": at}) for at in range(4)]
NOISE = ExpectedNoise({"chat": 0.01, "prefix": 0.01}, "")


def known(session_id: int, **changes: object) -> KnownNoise:
    fields: dict[str, object] = {
        "calibration": False,
        "model": "org/m",
        "workloads": {"chat": CHAT, "prefix": PREFIX},
        "metric": {"chat": "total_tok_per_s", "prefix": "total_tok_per_s"},
        "sd": {"chat": 0.004, "prefix": 0.006},
    }
    return KnownNoise(session_id, **{**fields, **changes})  # type: ignore[arg-type]


def test_noise_is_assumed_where_nothing_was_measured() -> None:
    found = expected_noise(PLAN, [])
    assert not found.measured
    assert found.sd == {"chat": ASSUMED_SD, "prefix": ASSUMED_SD}
    assert "assumed 1 %" in found.source


def test_an_aa_session_of_the_same_plan_says_most() -> None:
    found = expected_noise(PLAN, [known(9), known(7, calibration=True, sd={"chat": 0.002, "prefix": 0.003}), known(5)])
    assert found.sd == {"chat": 0.002, "prefix": 0.003}
    assert found.source == "0.3 % as in A/A session 7"


def test_of_other_workloads_the_largest_noise_is_taken_and_said() -> None:
    longer = replace(PLAN, workloads=(replace(CHAT, requests=500), PREFIX))
    found = expected_noise(longer, [known(9, model="org/other", sd={"chat": 0.05}), known(4)])
    assert found.sd == {"chat": 0.006, "prefix": 0.006}
    assert found.source == "0.6 % as in session 4, of other workloads"
    assert "of another model" in expected_noise(replace(PLAN, model="org/new"), [known(4)]).source


def test_an_aa_session_of_other_workloads_gives_way_to_a_session_of_these() -> None:
    short = {"chat": replace(CHAT, requests=1), "prefix": PREFIX}
    assert "session 3" in expected_noise(PLAN, [known(8, calibration=True, workloads=short), known(3)]).source


def test_more_blocks_see_smaller_effects_and_cost_more() -> None:
    seconds = seconds_of_launch(PLAN, 60.0, 10.0)
    assert seconds == 60 + 10 * 7
    found = list(prices(PLAN, THREE, NOISE, seconds, (2, 4, 6)))
    effects = [one.smallest_effect or 0.0 for one in found]
    assert effects == sorted(effects, reverse=True)
    assert 0.02 < effects[1] < 0.04
    assert [one.launches_at_most for one in found] == [10, 20, 30]
    for one in found:
        assert one.launches_expected <= one.launches_at_most
        assert one.money_at_most == pytest.approx(one.launches_at_most * seconds / 1000)
        assert one.hours_expected == pytest.approx(one.launches_expected * seconds / 3600)


def test_the_noisiest_workload_says_what_is_seen() -> None:
    alike = price_of(PLAN, THREE, NOISE, 100.0, 4)
    noisy = price_of(PLAN, THREE, ExpectedNoise({"chat": 0.01, "prefix": 0.03}, ""), 100.0, 4)
    assert (noisy.smallest_effect or 0) > 2 * (alike.smallest_effect or 1)
    assert noisy.launches_expected >= alike.launches_expected


def test_a_latency_decides_as_well() -> None:
    latency = replace(PLAN, decide=Decide(metric={"chat": "p99_ttft_ms"}))
    assert 0 < (price_of(latency, THREE, NOISE, 100.0, 4).smallest_effect or 0) < 0.05


def test_one_block_sees_nothing_and_too_many_are_refused() -> None:
    assert price_of(PLAN, THREE, NOISE, 100.0, 1).smallest_effect is None
    with pytest.raises(ValueError, match="at most 13"):
        price_of(PLAN, THREE, NOISE, 100.0, 14)


def test_nothing_more_is_worked_out_once_it_is_not_wanted() -> None:
    asked = iter([True, False])
    assert len(list(prices(PLAN, THREE, NOISE, 1.0, (2, 3, 4), lambda: next(asked)))) == 1
    assert not list(prices(PLAN, THREE[:1], NOISE, 1.0, (2, 3)))


def test_the_plans_own_number_is_among_the_choices() -> None:
    assert choices(4) == (2, 3, 4, 5, 6)
    assert choices(8) == (2, 3, 4, 5, 6, 8)
    assert choices(1)[0] == 1
    assert choices(40) == (2, 3, 4, 5, 6)


def test_the_fewest_blocks_that_see_an_effect() -> None:
    found = list(prices(PLAN, THREE, NOISE, 1.0, (2, 3, 4, 5, 6)))
    fewest = fewest_blocks(found, 0.03)
    assert fewest is not None
    assert 3 <= fewest <= 5
    assert fewest_blocks(found, 0.001) is None
