"""Whether a server answers and gets on, told from its samples and the clock. Pure: the clock is passed in.

Five kinds of death look different from outside: nothing listens, the request hangs, the answer is an error, the answer
is no metrics page, and the page answers while the engine behind it stands still. The first four are silence; the last
is told from requests that run while no counter of work moves.
"""

from dataclasses import dataclass
from typing import Literal

from engine.samples.sample_record import histogram_of
from store.records import SampleRecord

Life = Literal["asking", "answers", "slow", "stalled", "asleep", "silent"]

SILENT_INTERVALS, FAILED_INTERVALS = 2.0, 1.5  # without a word; where the last look failed
LEAST_SILENT_S = 1.0  # at four looks a second a busy machine is late by more than two of them
SLOW_S = 3.0  # a step of prefill may take as long on a small machine
STALLED_S = 10.0


@dataclass(frozen=True, slots=True)
class Liveness:
    """`since_s`: for how long (of `silent`, since the last answer; None where it never answered)."""

    life: Life
    since_s: float | None = None
    error: str | None = None

    @property
    def answers(self) -> bool:
        """Whether the newest figures are of now."""
        return self.life not in ("asking", "silent")


class Pulse:
    """Follows one server's samples in their order."""

    def __init__(self) -> None:
        self.answered_at: float | None = None
        self.error: str | None = None
        self._work: tuple[float | None, ...] | None = None
        self._moved_at = 0.0
        self._awake = True

    @property
    def still_s(self) -> float:
        """For how long requests have run without any work done, as of the newest answer."""
        return self.answered_at - self._moved_at if self.answered_at is not None else 0.0

    def add(self, at: float, sample: SampleRecord) -> None:
        """Take the next sample; `at` in unix seconds."""
        if not answered(sample):
            said = sample.raw.get("error")
            self.error = str(said) if said else "it answers, but with no metrics of vLLM"
            return
        self.error, self.answered_at = None, at
        steps = histogram_of(sample, "step_tokens")
        work = (sample.prompt_tokens, sample.generation_tokens, steps.count if steps else None)
        known = any(total is not None for total in work)
        if not sample.running or not known or work != self._work:
            self._moved_at = at
        self._work = work
        self._awake = sample.raw.get("sleep_state") in (None, "awake")

    def liveness(self, now: float, began: float, interval_s: float) -> Liveness:
        """How it is at `now` (unix seconds); it has been asked every `interval_s` since `began`."""
        heard = self.answered_at
        if now > self.silent_from(began, interval_s):
            return Liveness("silent", None if heard is None else now - heard, self.error)
        if heard is None:
            return Liveness("asking")
        if not self._awake:
            return Liveness("asleep")
        still = self.still_s
        if still >= STALLED_S:
            return Liveness("stalled", still)
        return Liveness("slow", still) if still >= max(SLOW_S, 2 * interval_s) else Liveness("answers")

    def silent_from(self, began: float, interval_s: float) -> float:
        """When it counts as silent if nothing more is heard of it, in unix seconds."""
        if self.answered_at is None:
            return began if self.error is not None else began + max(SILENT_INTERVALS * interval_s, LEAST_SILENT_S)
        intervals = SILENT_INTERVALS if self.error is None else FAILED_INTERVALS
        return self.answered_at + max(intervals * interval_s, LEAST_SILENT_S)


def answered(sample: SampleRecord) -> bool:
    """Whether a sample holds anything that a server of vLLM said."""
    said = (sample.running, sample.waiting, sample.kv_perc, sample.generation_tokens, sample.prompt_tokens)
    return any(value is not None for value in said)
