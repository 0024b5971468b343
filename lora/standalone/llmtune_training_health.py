"""When a training is to be stopped: what it computes is no number, runs away, or moves nothing.

Pure rules over numbers, apart from torch, so that they are tested without a training. Imported by llmtune_trainer.py in
the training Python (3.9 or newer); imports nothing of the program that starts that.
"""

from __future__ import annotations

import math
from collections import deque

WINDOW = 5
"""Losses of single steps are noisy: examples differ by more than a step learns. So means of so many are compared."""

WORSE_THAN_GUESSING = 3
"""Steps in a row. A model that guesses evenly among its vocabulary has a loss of ln(vocabulary); one that was trained
before, and is worse than that, is broken."""

EVEN = 0.01
"""A model that answers evenly comes to ln(vocabulary) up to rounding."""

KNOWN = 0.5
"""So much below guessing a model must have been: one of random weights begins at it, and may stay for long."""

NO_GRADIENT = 3
"""Steps in a row without any gradient. One may come of a batch whose answers are known by heart."""

OVERFLOWS = 8
"""Steps in a row whose gradient is not finite, with float16 only: its loss scale is halved after each of them (from
2^16, torch.amp.GradScaler), and the step is left out."""


class Health:
    """Takes the numbers of each step in order; answers with the reason to stop, or None."""

    def __init__(self, vocabulary: int, scaled: bool = False) -> None:
        """`vocabulary` in tokens; `scaled` is True where a loss scale meets overflowing gradients."""
        self._guessing = math.log(max(vocabulary, 2))
        self._overflows_allowed = OVERFLOWS if scaled else 0
        self._recent: deque[float] = deque(maxlen=WINDOW)
        self._lowest: float | None = None
        self._worse = self._still = self._overflows = 0
        self._moved = False

    def step(self, number: int, loss: float | None, gradient: float | None) -> str | None:
        """`loss` is the mean over the step's tokens, `gradient` the norm of the adapter's gradient before clipping,
        None where the trainer told none."""
        if loss is None or not math.isfinite(loss):
            return f"the loss is not a number at step {number}: lower --learning-rate, or train in bfloat16 or float32"
        return self._loss(number, loss) or self._gradient(number, gradient)

    def evaluated(self, number: int, loss: float | None) -> str | None:
        """`loss` is that of the validation part."""
        if loss is not None and math.isfinite(loss):
            return None
        return f"the validation loss is not a number at step {number}: lower --learning-rate"

    def _gradient(self, number: int, gradient: float | None) -> str | None:
        if gradient is None:
            return None
        if not math.isfinite(gradient):
            self._overflows += 1
            if self._overflows > self._overflows_allowed:
                return f"the gradient is not a number at step {number}: lower --learning-rate"
            return None
        self._overflows = 0
        self._moved = self._moved or gradient > 0.0
        self._still = self._still + 1 if gradient == 0.0 else 0
        if self._still >= NO_GRADIENT and self._moved:
            return (
                f"nothing is learned any more: the gradient has been 0 for {NO_GRADIENT} steps up to step {number}; "
                "lower --learning-rate, or take fewer --steps where the loss is near 0 too"
            )
        if self._still >= NO_GRADIENT:
            return (
                f"nothing is learned: no gradient reached the adapter in {NO_GRADIENT} steps up to step {number}; "
                "choose other --targets, or look at whether the answers of the data set bear loss"
            )
        return None

    def _loss(self, number: int, loss: float) -> str | None:
        self._worse = self._worse + 1 if loss >= self._guessing - EVEN else 0
        knew = self._lowest is not None and self._lowest < self._guessing - KNOWN
        if self._worse >= WORSE_THAN_GUESSING and knew:
            return (
                f"the training diverges: its loss of {loss:.3g} at step {number} is no better than guessing "
                f"({self._guessing:.3g}): lower --learning-rate"
            )
        self._recent.append(loss)
        mean = sum(self._recent) / len(self._recent)
        if self._lowest is not None and len(self._recent) == WINDOW and mean > 2 * self._lowest + 1:
            return (
                f"the training diverges: the loss has risen from {self._lowest:.3g} to {mean:.3g} (means of "
                f"{WINDOW} steps) at step {number}: lower --learning-rate"
            )
        self._lowest = mean if self._lowest is None else min(self._lowest, mean)
        return None
