"""The rules by which a training is stopped: what is sick is, and what is only noisy, slow or new is not."""

import math
import random

from lora.standalone.llmtune_training_health import NO_GRADIENT, OVERFLOWS, WINDOW, Health

VOCABULARY = 49_152


def fed(losses: list[float | None], gradients: list[float | None] | None = None, scaled: bool = False) -> str | None:
    """The first reason that comes."""
    health = Health(VOCABULARY, scaled)
    for number, loss in enumerate(losses, 1):
        gradient = 1.0 if gradients is None else gradients[number - 1]
        if (reason := health.step(number, loss, gradient)) is not None:
            return reason
    return None


def test_a_noisy_training_that_learns_is_left_alone() -> None:
    draw = random.Random(1)
    assert fed([0.2 + 3 * math.exp(-step / 20) + draw.gauss(0, 0.15) for step in range(300)]) is None
    assert fed([draw.uniform(1.0, 4.0) for _ in range(300)]) is None, "examples differ by more than a step learns"


def test_a_model_of_random_weights_may_begin_at_guessing() -> None:
    guess = math.log(VOCABULARY)
    assert fed([guess + 0.3, guess + 0.1, guess, guess + 0.2, guess - 0.1, 9.0, 8.0]) is None


def test_a_loss_that_is_no_number_stops_at_once() -> None:
    for bad in (math.nan, math.inf, None):
        assert "loss is not a number at step 3" in (fed([2.0, 2.0, bad]) or "")
    assert "validation loss is not a number at step 9" in (Health(VOCABULARY).evaluated(9, math.nan) or "")
    assert Health(VOCABULARY).evaluated(9, 1.0) is None


def test_a_gradient_that_is_no_number_stops_at_once_unless_the_loss_is_scaled() -> None:
    assert "gradient is not a number at step 2" in (fed([2.0, 2.0], [1.0, math.inf]) or "")
    finds_its_scale = [math.inf] * OVERFLOWS + [1.0, math.inf, 1.0]
    assert fed([2.0] * len(finds_its_scale), finds_its_scale, scaled=True) is None
    assert "gradient is not a number" in (fed([2.0] * 20, [math.inf] * 20, scaled=True) or "")


def test_one_that_was_better_than_guessing_and_is_no_more_diverges() -> None:
    assert "no better than guessing (10.8)" in (fed([2.5, 2.4, 12.0, 11.0, 28.0]) or "")
    flat = math.log(VOCABULARY) - 1e-6  # what a dead model answers
    assert "no better than guessing" in (fed([2.5, 2.4, flat, flat, flat], [1.0, 1.0, 0.0, 0.0, 0.0]) or "")
    assert fed([2.5] * 6 + [12.0] + [2.4] * 6) is None, "one step is one step"


def test_one_whose_loss_rises_far_above_its_lowest_diverges() -> None:
    rising = [3.0] * WINDOW + [1.0] * WINDOW + [3.2] * WINDOW
    assert "the loss has risen from 1 to 3.2 (means of 5 steps)" in (fed(rising) or "")
    assert fed([3.0] * WINDOW + [1.0] * WINDOW + [2.5] * 20) is None
    assert fed([0.01] * WINDOW + [0.9] * 20) is None, "near 0 a multiple says nothing"


def test_no_gradient_stops_after_a_few_steps() -> None:
    assert "no gradient reached the adapter" in (fed([2.0] * NO_GRADIENT, [0.0] * NO_GRADIENT) or "")
    assert fed([2.0] * 4, [0.0, 0.0, 0.5, 0.0]) is None
    assert "any more" in (fed([2.0] * 5, [1.0, 1.0, 0.0, 0.0, 0.0]) or "")
    assert fed([2.0] * 10, [None] * 10) is None, "what is not told cannot be judged"
