"""Whole simulated sessions, few of them: what the benchmark shows with thousands. Deterministic."""

import numpy as np
import pytest

from tests.benchmarks.simulated_noise import Setting, at_the_margin, draw, mixed, no_effect
from tests.benchmarks.simulated_score import Score, simulate
from tests.benchmarks.simulated_sessions import play
from tuning.verdict.records import Rules

SESSIONS = 60
RULES = Rules(12, 4)
DIVIDED = Rules(12, 4, workloads=2)


def at_most(score: Score, count: int, perc: float) -> bool:
    return score.perc(count) <= perc + 2 * 100 * (perc / 100 * (1 - perc / 100) / score.sessions) ** 0.5


@pytest.mark.parametrize(
    ("setting", "rules"),
    [
        (Setting("plain"), RULES),
        (Setting("drift", linear_drift=0.03), RULES),
        (Setting("heavy tails", heavy_tails=True), RULES),
        (Setting("unequal", unequal="uniform"), RULES),
        (Setting("a baseline launch went wrong", wrong="baseline"), RULES),
        (Setting("two workloads", workloads=2), DIVIDED),
        (Setting("one candidate", candidates=1), Rules(1, 4)),
    ],
    ids=lambda value: value.name if isinstance(value, Setting) else "",
)
def test_false_winners_are_rare(setting: Setting, rules: Rules) -> None:
    score = simulate(setting, rules, no_effect(setting.candidates), SESSIONS, (7, 0))
    assert score.sessions == SESSIONS
    assert at_most(score, score.false_winner, 5.0)
    assert score.rivals.single > score.false_winner  # what tuners do is worse


def test_true_effects_are_found_and_launches_are_saved() -> None:
    score = simulate(Setting("plain"), RULES, mixed(12), SESSIONS, (7, 1))
    assert at_most(score, score.false_winner, 5.0)
    assert score.power[2] > 65  # 3 %: about 81
    assert score.power[3] > 90  # 5 %
    assert score.launches / score.sessions < 4 * 13
    assert at_most(score, score.missed_above, 5.0)
    assert at_most(score, score.missed_below, 5.0)


def test_what_lies_at_the_margin_is_not_called_equivalent() -> None:
    rules = Rules(12, 4, decide_all=True)
    quiet = Setting("quiet", launch_sd=0.002)
    at_margin = simulate(quiet, rules, at_the_margin(12), SESSIONS, (7, 2))
    assert at_most(at_margin, at_margin.false_equivalent, 5.0)
    same = simulate(quiet, rules, no_effect(12), SESSIONS, (7, 3))
    assert same.none_equivalent > 0.8 * same.none


def test_noise_far_from_equal_is_said() -> None:
    far = Setting("far", unequal="quarter", quiet=0.5, launch_sd=0.02)
    score = simulate(far, RULES, no_effect(12), SESSIONS, (7, 4))
    assert score.perc(score.unequal) > 70
    assert at_most(score, score.silent_winner, 5.0)


def test_a_session_is_the_same_again() -> None:
    draws = draw(Setting("missing", redone=0.2, missing=0.1), mixed(12), 5, np.random.default_rng(3))
    assert play(draws, 4, RULES) == play(draws, 4, RULES)
