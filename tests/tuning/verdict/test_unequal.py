"""Noise far from equal is seen, makes the bar higher, and a launch set aside makes no winner of its own candidate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from tests.tuning.verdict.layouts import session
from tuning.verdict.boundary import bar
from tuning.verdict.layout import fit
from tuning.verdict.look import look
from tuning.verdict.records import LaunchValue, Rules
from tuning.verdict.unequal import level, noisiest

EVERYBODY = range(1, 13)


def noisier(values: list[LaunchValue], configuration: int, rng: np.random.Generator, sd: float) -> list[LaunchValue]:
    return [
        replace(value, value=value.value + sd * float(rng.standard_normal()))
        if value.configuration == configuration
        else value
        for value in values
    ]


def test_a_candidate_ten_times_as_noisy_is_named() -> None:
    rng = np.random.default_rng(1)
    fitted = fit(noisier(session(rng, 12, 4, 3), 5, rng, 0.1))
    assert noisiest(fitted, 12) == (5,)


def test_a_noisy_baseline_is_not_a_candidate() -> None:
    rng = np.random.default_rng(2)
    assert noisiest(fit(noisier(session(rng, 12, 4, 3), 0, rng, 0.1)), 12) == ()


def test_two_candidates_or_no_noise_say_nothing() -> None:
    rng = np.random.default_rng(3)
    assert noisiest(fit(noisier(session(rng, 2, 4), 1, rng, 0.1)), 2) == ()
    assert noisiest(fit(session(rng, 5, 4, 2, sd=0.0, drift=0.0)), 5) == ()


@pytest.mark.parametrize("candidates", [3, 12])
def test_equal_noise_is_called_unequal_about_as_often_as_the_level_says(candidates: int) -> None:
    rng = np.random.default_rng(4)
    found = [bool(noisiest(fit(session(rng, candidates, 4, 2)), candidates)) for _ in range(400)]
    # Bonferroni's bound, and the residuals of one block depend on each other: not more, and not much less.
    assert 0.5 * level(candidates) <= np.mean(found) <= level(candidates) + 0.05


def test_the_share_of_the_squares_is_held_against_its_beta_distribution() -> None:
    rng = np.random.default_rng(5)
    fitted = fit(session(rng, 8, 4, 3))
    squares, free = fitted.by_configuration(fitted.residuals**2), fitted.by_configuration(1 - fitted.leverages)
    tails = beta.sf(squares / squares.sum(), free / 2, (fitted.df - free) / 2)[1:]
    assert noisiest(fitted, 8) == tuple(j for j, p in enumerate(tails, start=1) if p < level(8) / 8)


def test_a_look_at_unequal_noise_says_so_and_asks_for_more() -> None:
    rng = np.random.default_rng(6)
    rules, values = Rules(12, 4), session(rng, 12, 4, 3)
    calm = look(values, rules, EVERYBODY)
    to_and_fro = [
        replace(value, value=value.value + 0.04 * (-1) ** value.block) if value.configuration == 5 else value
        for value in values
    ]
    wild = look(to_and_fro, rules, EVERYBODY)
    assert wild.set_aside == ()
    assert calm.unequal == ()
    assert calm.bar == bar(rules, 4)
    assert wild.unequal == (5,)
    assert wild.bar == bar(replace(rules, strict=True), 4)
    moderated = wild.noise.by_configuration[5]
    assert moderated.sd is not None
    assert wild.noise.sd is not None
    # d_0 = 3 in the place of 6: the noisy one is drawn less towards the rest
    by_three = (3 * wild.noise.sd**2 + moderated.df * moderated.sd**2) / (3 + moderated.df)
    assert moderated.moderated_sd == pytest.approx(by_three**0.5)


def test_a_launch_set_aside_makes_no_winner_of_its_own_candidate() -> None:
    rng = np.random.default_rng(7)
    values = session(rng, 12, 4, 3, sd=0.003, effects={5: 0.05, 6: 0.05})
    wrong = [
        replace(value, value=value.value - 0.25) if (value.configuration, value.block) == (5, 2) else value
        for value in values
    ]
    before, after = look(values, Rules(12, 4), EVERYBODY), look(wrong, Rules(12, 4), EVERYBODY)
    assert (before.verdicts[5].state, before.verdicts[6].state) == ("better", "better")
    assert [value.configuration for value in after.set_aside] == [5]
    assert (after.verdicts[5].state, after.verdicts[6].state) == ("undecided", "better")
    assert after.verdicts[5].low is not None
    assert after.verdicts[5].low > 0  # the interval without it stays on the screen, beside that with it
    assert after.verdicts[5].with_all is not None
