import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from tests.tuning.verdict.layouts import incomplete, session
from tuning.verdict.boundary import bars
from tuning.verdict.look import latest, look, looks
from tuning.verdict.records import FINAL_STATES, LaunchValue, Look, Prior, Rules


def signed(found: Look) -> dict[int, tuple[str, float | None, int | None]]:
    return {g: (v.state, v.effect, v.more_blocks) for g, v in found.verdicts.items()}


def test_what_differs_much_is_said_after_two_blocks() -> None:
    values = session(np.random.default_rng(1), 6, 2, 2, effects={1: 0.2, 2: -0.2})
    found = look(values, Rules(6, 4), range(1, 7))
    assert found.blocks == 2
    assert found.verdicts[1].state == "better"
    assert found.verdicts[2].state == "worse"
    assert found.verdicts[1].effect == pytest.approx(math.expm1(0.2), abs=0.03)
    assert found.bar == bars(Rules(6, 4))[0]
    assert found.noise.df == 2 * 8 - 2 - 7 + 1
    assert found.noise.sd == pytest.approx(0.01, rel=0.6)


def test_one_candidate_is_the_paired_t_test() -> None:
    """Interval and verdict by scipy: better exactly where the one-sided p is below that of the bar."""
    rules = Rules(1, 4, smallest_effect=0.5, margin=1e-9)
    agreed = set()
    for seed in range(40):
        values = session(np.random.default_rng(seed), 1, 4, effects={1: 0.02})
        own, base = ([v.value for v in values if v.configuration == g] for g in (1, 0))
        paired = stats.ttest_rel(own, base, alternative="greater")
        found = look(values, rules, {1})
        c = bars(rules)[2]
        assert (found.verdicts[1].state == "better") == (paired.pvalue < stats.norm.sf(c))
        agreed.add(found.verdicts[1].state)
        half = stats.ttest_rel(own, base).confidence_interval(1 - 2 * stats.norm.sf(c))
        assert found.verdicts[1].low == pytest.approx(math.expm1(half.low))
        assert found.verdicts[1].high == pytest.approx(math.expm1(half.high))
    assert "better" in agreed
    assert len(agreed) > 1


@pytest.mark.parametrize("seed", range(25))
def test_the_same_launches_say_the_same_in_any_order_and_unit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = incomplete(rng)
    in_play = {v.configuration for v in values} - {0}
    rules = Rules(max(len(in_play), 1), 6)
    found = look(values, rules, in_play)
    shuffled = [values[i] for i in rng.permutation(len(values))]
    faster = [replace(v, value=v.value + math.log(1000)) for v in values]
    for other in (look(shuffled, rules, in_play), look(faster, rules, in_play)):
        for g, verdict in found.verdicts.items():
            assert other.verdicts[g].state == verdict.state
            for name in ("effect", "low", "high"):
                assert getattr(other.verdicts[g], name) == pytest.approx(getattr(verdict, name), abs=1e-9)
        assert other.noise.sd == pytest.approx(found.noise.sd, abs=1e-9)


@pytest.mark.parametrize("seed", range(15))
def test_a_latency_is_the_mirror_of_its_rate(seed: int) -> None:
    """1/latency is a rate: the same launches, the same verdicts, the reciprocal interval."""
    values = session(np.random.default_rng(seed), 5, 4, 2, effects={1: 0.05, 2: -0.05})
    slower = [replace(v, value=-v.value) for v in values]
    rules = Rules(5, 4, decide_all=True)
    rate = look(values, rules, range(1, 6))
    latency = look(slower, replace(rules, larger_is_better=False), range(1, 6))
    for g, verdict in rate.verdicts.items():
        other = latency.verdicts[g]
        assert (other.state, other.also, other.more_blocks) == (verdict.state, verdict.also, verdict.more_blocks)
        assert verdict.low is not None
        assert other.high == pytest.approx(1 / (1 + verdict.low) - 1)


def test_a_block_without_the_baseline_counts_for_nothing() -> None:
    values = session(np.random.default_rng(1), 4, 3, 2)
    without = [v for v in values if not (v.configuration == 0 and v.block == 1)]
    found = look(without, Rules(4, 4), range(1, 5))
    assert found.blocks == 2
    assert found.bar == bars(Rules(4, 4))[0]
    assert {v.block for v in found.dropped} == {1}
    rest = [v for v in values if v.block != 1]
    assert signed(found) == signed(look(rest, Rules(4, 4), range(1, 5)))


def test_a_missing_launch_is_no_obstacle() -> None:
    values = session(np.random.default_rng(1), 4, 4, 2, effects={1: 0.2})
    missing = [v for v in values if (v.configuration, v.block) != (1, 2)]
    found = look(missing, Rules(4, 4), range(1, 5)).verdicts
    assert found[1].launches == 3
    assert found[1].state == "better"
    one = [v for v in values if v.configuration != 1 or v.block == 0]
    alone = look(one, Rules(4, 4), range(1, 5)).verdicts[1]
    assert (alone.state, alone.low, alone.more_blocks) == ("undecided", None, None)
    assert alone.effect == pytest.approx(0.2, abs=0.1)
    early = [v for v in one if v.block < 3]
    assert look(early, Rules(4, 4), range(1, 5)).verdicts[1].more_blocks == 1
    never = look([v for v in values if v.configuration != 1], Rules(4, 4), range(1, 5)).verdicts[1]
    assert (never.state, never.effect, never.launches) == ("undecided", None, 0)


def test_launches_of_candidates_that_left_still_tell_the_noise() -> None:
    values = session(np.random.default_rng(1), 6, 4, 2)
    left = [v for v in values if v.configuration in (0, 1) or v.block < 2]
    found = look(left, Rules(6, 4), {1})
    assert set(found.verdicts) == {1}
    assert set(found.noise.by_configuration) == set(range(7))
    alone = look([v for v in left if v.configuration in (0, 1)], Rules(6, 4), {1})
    assert found.noise.df > alone.noise.df


def test_an_outlier_is_set_aside_and_shown_both_ways() -> None:
    values = session(np.random.default_rng(3), 6, 4, 2, effects={1: 0.05})
    place = next(i for i, v in enumerate(values) if v.configuration == 1 and v.block == 2)
    bad = [*values[:place], replace(values[place], value=values[place].value - 0.1), *values[place + 1 :]]
    found = look(bad, Rules(6, 4), range(1, 7))
    assert found.set_aside == (bad[place],)
    verdict = found.verdicts[1]
    assert verdict.launches == 3
    assert verdict.with_all is not None
    assert verdict.with_all.effect is not None
    assert verdict.effect is not None
    assert verdict.with_all.effect < verdict.effect - 0.015
    assert verdict.with_all.high is not None
    assert verdict.with_all.low is not None
    assert verdict.low is not None
    assert verdict.with_all.low < verdict.low
    assert look(values, Rules(6, 4), range(1, 7)).verdicts[1].with_all is None


def test_a_suspect_waits_a_block() -> None:
    values = session(np.random.default_rng(3), 12, 2, 3, effects={4: 0.4})
    place = next(i for i, v in enumerate(values) if v.configuration == 4)
    bad = [*values[:place], replace(values[place], value=values[place].value - 0.2), *values[place + 1 :]]
    verdict = look(bad, Rules(12, 4), range(1, 13)).verdicts[4]
    assert verdict.suspect
    assert (verdict.state, verdict.more_blocks) == ("undecided", 1)
    assert look(bad, Rules(12, 2), range(1, 13)).verdicts[4].more_blocks is None
    assert not look(values, Rules(12, 4), range(1, 13)).verdicts[4].suspect


def test_before_the_first_look_there_is_an_effect_and_no_interval() -> None:
    values = session(np.random.default_rng(3), 3, 1, 2, effects={1: 0.5})
    found = look(values, Rules(3, 4), {1, 2, 3})
    assert (found.blocks, found.bar) == (1, None)
    verdict = found.verdicts[1]
    assert (verdict.state, verdict.low, verdict.high, verdict.more_blocks) == ("undecided", None, None, None)
    assert verdict.effect == pytest.approx(math.expm1(0.5), abs=0.1)
    nothing = look([], Rules(3, 4), {1})
    assert nothing.blocks == 0
    assert nothing.verdicts[1].effect is None


def test_prior_noise_narrows_the_interval_of_one_candidate() -> None:
    values = session(np.random.default_rng(7), 1, 3)
    alone = look(values, Rules(1, 4), {1})
    assert alone.noise.sd is not None
    helped = look(values, Rules(1, 4), {1}, Prior(alone.noise.sd, 10))
    assert helped.noise.prior_used
    assert helped.noise.df == alone.noise.df + 10
    assert helped.verdicts[1].low > alone.verdicts[1].low  # type: ignore[operator]


def test_without_any_noise() -> None:
    values = [LaunchValue(b, g, 5 + 0.1 * b + 0.03 * g) for b in range(2) for g in (0, 0, 1, 2, 3)]
    found = look(values, Rules(3, 4), {1, 2, 3})
    assert [found.verdicts[g].state for g in (1, 2, 3)] == ["better"] * 3
    assert all(math.isfinite(v.low) for v in found.verdicts.values())  # type: ignore[arg-type]


def test_looks_follow_a_session() -> None:
    values = session(np.random.default_rng(1), 6, 4, 2, effects={1: 0.2, 2: -0.2})
    done = looks(values, Rules(6, 4), range(1, 7))
    assert [one.blocks for one in done] == [1, 2, 3, 4]
    for before, after in pairwise(done):
        out = {g for g, v in before.verdicts.items() if v.state in FINAL_STATES}
        assert set(after.verdicts) == set(before.verdicts) - out
    assert set(latest(done)) == set(range(1, 7))
    assert latest(done)[1] == done[1].verdicts[1]
    # What is measured later does not change what was said.
    assert looks([v for v in values if v.block < 3], Rules(6, 4), range(1, 7)) == done[:3]


@pytest.mark.parametrize(
    ("rules", "in_play", "value"),
    [(Rules(2, 2), {1, 2}, 0.0), (Rules(1, 4), {1, 2}, 0.0), (Rules(2, 4), {0, 1}, 0.0), (Rules(2, 4), {1}, math.nan)],
)
def test_what_the_rules_do_not_cover_is_refused(rules: Rules, in_play: set[int], value: float) -> None:
    values = session(np.random.default_rng(1), 2, 3)
    with pytest.raises(ValueError):
        look([*values, LaunchValue(0, 1, value)], rules, in_play)


def test_equal_noise_keeps_the_promise() -> None:
    """A coarse guard; the simulations of the benchmarks are the fine one: at most 5 % of 300 sessions."""
    rng = np.random.default_rng(20)
    rules = Rules(3, 3)
    false = sum(
        any(v.state == "better" for v in latest(looks(session(rng, 3, 3, 2), rules, {1, 2, 3})).values())
        for _ in range(300)
    )
    assert false <= 15
