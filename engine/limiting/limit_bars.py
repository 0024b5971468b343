"""From where on something limits a server: thresholds of what a while of its samples shows, each with its reason."""

from dataclasses import dataclass

LOOK_BACK_S = 60.0
"""Of a live window only so much is looked at: what limits it is asked of now."""
LEAST_READINGS = 3
"""With fewer, one odd step would decide."""
LEAST_PAUSES = 2
"""Readings without a request: one may be the moment between two waves of requests that end together."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A threshold that is harder to pass than to stay above, so that a figure about it changes no sentence a second."""

    enter: float
    stay: float

    def holds(self, value: float, said: bool) -> bool:
        """Whether `value` is above it; `said`: it was when that was said last."""
        return value >= (self.stay if said else self.enter)


QUEUE_LASTS = Bar(0.5, 0.35)
"""Share of the time with a queue from which the queue is the limit: a burst is none."""
KV_CLAIMS = 0.25
"""Share of the queue's time with a full KV cache from which a queue at 80 to 95 % is put down to KV too, where steps
are not full: the cache then swings between prompts that fit and prompts that do not."""
LEADS = 0.7
"""What was said stays while its share is that of the largest: two limits that take turns are not told in turn."""
IDLE = Bar(0.95, 0.9)
"""Share of the time without a request."""
BUSY = Bar(0.9, 0.8)
"""Share of the time with a request from which the server always has something to do."""
GPU_BUSY = Bar(90.0, 85.0)
"""Per cent. NVML counts any moment in which a kernel ran. An engine with requests makes one step after the other, so
less means that kernels wait for the host; a 7B model run eagerly on an H200 stood at 30 to 60."""
POWER_FULL = Bar(0.8, 0.75)
"""Share of the power limit. A GPU that decodes a small batch is busy, but waits for its memory, at about half of it."""
THROTTLED = Bar(0.5, 0.35)
"""Share of the busy time."""

FULL_STEPS = 0.5
"""Share of the tokens that came in steps of more than half the budget. By tokens, since one full step takes as long as
dozens that only decode."""
PLATEAU, PLATEAU_SHARE = 0.95, 0.8
"""Where max-num-seqs is not known: running within so much of its largest for that share of the queue's time."""
DECODE_TOKENS = 4
"""Tokens a step and request, at the median, up to which steps mostly decode: one, and some with speculation."""
MANY_RUNNING = Bar(8.0, 6.0)
"""A step costs about the same for one request as for so many: its time is that of reading the weights."""
