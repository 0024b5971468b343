"""The state of an engine at each reading, by what its scheduler would do next; thresholds of one reading."""

from collections.abc import Iterator, Sequence
from typing import Literal

from engine.limiting.load_readings import Reading, Timed, came_in
from engine.numbers import finite
from engine.records import Histogram
from engine.scrape.histograms import mean
from store.records import SampleRecord

State = Literal["silent", "idle", "free", "deferred", "kv", "sequences", "budget", "unclear"]

QUEUED: tuple[State, ...] = ("kv", "sequences", "budget", "unclear")

KV_FULL_PERC, KV_STILL_FULL_PERC = 95.0, 90.0
"""Above the first, less is free than a few requests grow by until one ends; it stays full down to the second."""
KV_FREE_PERC = 80.0
"""Below it KV is not what a usual request waits for; between, a long prompt may find no room."""
SLOTS_FULL = 0.9
"""Of max-num-seqs: up to a tenth may have ended in the step that the gauge is of, and are let in with the next."""
MANY_DEFERRED = 0.1
"""Share of what runs from which requests that are deferred count: one that waits for its grammar does not."""


def states_of(readings: Sequence[Reading], timed: Timed, seqs: float | None) -> tuple[State, ...]:
    """One state a reading. `seqs` is max-num-seqs where it is known."""
    prompt = mean(came_in(timed, "prompt_length"))

    def each() -> Iterator[State]:
        full = False
        for reading in readings:
            full = _kv_full(reading, full, prompt, timed[-1][1])
            yield _state(reading, full, seqs)

    return tuple(each())


def _kv_full(reading: Reading, was: bool, prompt: float | None, newest: SampleRecord) -> bool:
    """Whether KV had no room for another request. A prompt has to fit as a whole (0.19 on), so that a cache may be
    too full for one long before its end: the mean prompt of the time stands for it, without what is in the cache."""
    kv = reading.kv_perc
    if kv is None:
        return False
    if kv >= (KV_STILL_FULL_PERC if was else KV_FULL_PERC):
        return True
    tokens = finite(newest.raw.get("kv_cache_tokens"))
    if prompt is None or tokens is None or newest.raw.get("engines") or kv < KV_FREE_PERC:
        return False
    return (100.0 - kv) / 100.0 * tokens < prompt


def _state(reading: Reading, kv_full: bool, seqs: float | None) -> State:
    if reading.running is None or reading.waiting is None:
        return "silent"
    if reading.preempted:
        return "kv"
    if not reading.waiting:
        if reading.deferred and reading.deferred >= MANY_DEFERRED * reading.running:
            return "deferred"
        return "free" if reading.running else "idle"
    if seqs and (reading.running >= seqs or (reading.running >= SLOTS_FULL * seqs and not kv_full)):
        return "sequences"
    if kv_full:
        return "kv"
    return "budget" if reading.kv_perc is not None and reading.kv_perc <= KV_FREE_PERC else "unclear"


def full_share(steps: Histogram | None, budget: float | None) -> float | None:
    """The share of tokens that came in steps of more than half the budget, 0 to 1; None where it cannot be told.

    vLLM counts a prompt in the step that ends its prefill: in chunks or not, its tokens count as of a full step here
    where it is longer than half the budget. Within a bucket its middle is taken.
    """
    if steps is None or not budget or steps.count <= 0:
        return None
    total = large = below = under = 0.0
    for bound, cumulative in steps.buckets:
        tokens = (cumulative - below) * (under if bound == float("inf") else (under + bound) / 2)
        if bound == float("inf") and under < budget / 2:  # beyond the last bound nothing is resolved
            return None if cumulative > below else large / total if total else None
        total += tokens
        large += tokens if under >= budget / 2 else 0.0
        below, under = cumulative, bound
    return large / total if total else None
