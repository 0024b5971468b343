"""What limited the server in a run: the sentence of engine.limiting over its load, and what several runs agree on."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from engine.limiting.bottleneck import Limit, what_limits
from engine.limiting.knobs import Knobs
from engine.numbers import finite
from engine.records import BenchOutcome
from store.clock import parse_utc
from store.records import RunRecord, SampleRecord

UNTOLD = "Cannot tell"


def run_limit(outcome: BenchOutcome, samples: Sequence[SampleRecord], knobs: Knobs) -> Limit | None:
    """Over the load itself: what is before it makes prompts, what is after it writes results. `samples` ascend; None
    without any."""
    return what_limits(load_samples(outcome, samples), knobs)


def load_samples(outcome: BenchOutcome, samples: Sequence[SampleRecord]) -> Sequence[SampleRecord]:
    """Those of the load, and the one before it, from which the first difference is taken. Where it is not known when
    the load began (a run through the command line): from the first request to the last."""
    duration = finite(outcome.result.get("duration"))
    if outcome.load_started_at is None or duration is None:
        busy = [at for at, sample in enumerate(samples) if sample.running or sample.waiting]
        return samples[max(0, busy[0] - 1) : busy[-1] + 1] if busy else samples
    begin = parse_utc(outcome.load_started_at)
    end = begin + timedelta(seconds=duration)
    times = [parse_utc(sample.at) for sample in samples]
    inside = [at for at, time in enumerate(times) if begin < time <= end]
    return samples[max(0, inside[0] - 1) : inside[-1] + 1] if inside else samples[:1]


def sentences(runs: Iterable[RunRecord]) -> tuple[str, ...]:
    """What is kept of the runs, in their order; those of an older database have none."""
    return tuple(run.limited_by for run in runs if run.limited_by)


def finding(sentence: str) -> str:
    """`KV-bound` of `KV-bound (engine 1 of 2): KV above …`; `Cannot tell` of all that begin so."""
    words = sentence.partition(":")[0].partition(" (")[0]
    return UNTOLD if words.startswith(UNTOLD) else words


def agreed(said: Sequence[str]) -> str:
    """`KV-bound` where all runs say so, else the most frequent: `KV-bound in 2 of 3 runs`; "" without any."""
    if not said:
        return ""
    ((most, count),) = Counter(map(finding, said)).most_common(1)
    return most if count == len(said) else f"{most} in {count} of {len(said)} runs"


def example(said: Sequence[str]) -> str:
    """The newest sentence of those that say what `agreed` says, whole."""
    if not said:
        return ""
    ((most, _),) = Counter(map(finding, said)).most_common(1)
    return next(sentence for sentence in reversed(said) if finding(sentence) == most)
