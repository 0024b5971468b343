"""What a server did between two samples: differences of its counters, per second of the monotonic clock."""

from dataclasses import dataclass
from typing import Self

from engine.numbers import finite
from engine.records import ServerSample


@dataclass(frozen=True, slots=True)
class Rates:
    """`seconds` between the samples. A figure is None where a counter is absent, no time passed, or the server started
    anew in between (`restarted`): its counters then count something else."""

    seconds: float
    restarted: bool = False
    prompt_tok_per_s: float | None = None
    generation_tok_per_s: float | None = None
    requests_per_s: float | None = None
    preemptions: float | None = None
    prefix_hit_perc: float | None = None

    @classmethod
    def between(cls, before: ServerSample, after: ServerSample) -> Self:
        """Rates of the time from `before` to `after`."""
        seconds = after.clock - before.clock
        if restarted(before, after):
            return cls(seconds, restarted=True)
        if seconds <= 0:
            return cls(seconds)
        queries = _increase(before.prefix_queries, after.prefix_queries)
        hits = _increase(before.prefix_hits, after.prefix_hits)
        return cls(
            seconds,
            prompt_tok_per_s=_per_second(before.prompt_tokens, after.prompt_tokens, seconds),
            generation_tok_per_s=_per_second(before.generation_tokens, after.generation_tokens, seconds),
            requests_per_s=_per_second(_finished(before), _finished(after), seconds),
            preemptions=_increase(before.preemptions, after.preemptions),
            prefix_hit_perc=_share(hits, queries),
        )


def prefix_hit_perc(sample: ServerSample) -> float | None:
    """Share of queried prompt tokens found in the prefix cache since the server started, 0 to 100."""
    return _share(sample.prefix_hits, sample.prefix_queries)


def restarted(before: ServerSample, after: ServerSample) -> bool:
    """Whether the server is another process in `after`: it says so, or a counter fell. Not every server says when it
    started (vLLM's Rust front end and several API servers do not), so each total is looked at."""
    if None not in (before.process_start, after.process_start) and before.process_start != after.process_start:
        return True
    counters = [
        (before.preemptions, after.preemptions),
        (before.prompt_tokens, after.prompt_tokens),
        (before.generation_tokens, after.generation_tokens),
        (before.prefix_queries, after.prefix_queries),
        (before.prefix_hits, after.prefix_hits),
        (_finished(before), _finished(after)),
        *((total, after.counters.get(name)) for name, total in before.counters.items()),
        *((one.count, _count(after, name)) for name, one in before.histograms.items()),
    ]
    return any(old is not None and new is not None and new < old for old, new in counters)


def _count(sample: ServerSample, histogram: str) -> float | None:
    found = sample.histograms.get(histogram)
    return None if found is None else found.count


def _finished(sample: ServerSample) -> float | None:
    return sum(sample.requests_finished.values()) if sample.requests_finished else None


def _increase(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else finite(after - before)


def _per_second(before: float | None, after: float | None, seconds: float) -> float | None:
    increase = _increase(before, after)
    return None if increase is None else finite(increase / seconds)


def _share(hits: float | None, queries: float | None) -> float | None:
    return finite(100 * hits / queries) if hits is not None and queries else None
