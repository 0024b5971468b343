"""Whether prompts were answered from the prefix cache that the workload does not repeat."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine.numbers import finite
from engine.samples.sample_record import total_of
from store.records import SampleRecord
from tuning.checks.finding import Finding, RunFacts, span
from tuning.records import Workload

UNEXPLAINED_HITS_PERC = 5.0  # above what the workload's own prefixes give
_CACHED = ("local_cache_hit", "external_kv_transfer")  # sources of prompt tokens that were not computed


@dataclass(frozen=True, slots=True)
class PromptHits:
    """Prompt tokens that came from the cache, of all. `by_prompt`: each prompt counts once, when its first token is
    out. Else they are the scheduler's lookups, which count a prompt again whenever it is tried again: with a full KV
    cache (vLLM issue 43736), and until September 2025 after a preemption, where the request finds the blocks that it
    has just given back (issue 25780, pull request 25787)."""

    hits: float
    tokens: float
    by_prompt: bool
    preempted: float = 0.0

    @property
    def perc(self) -> float:
        return 100 * self.hits / self.tokens

    @property
    def inflated(self) -> bool:
        """Whether requests that were preempted may stand among the hits."""
        return not self.by_prompt and self.preempted > 0


def prompt_hits(samples: Sequence[SampleRecord]) -> PromptHits | None:
    """Between the first sample and the last; None where no prompt was counted, or counters began anew."""
    preempted = increase(samples, lambda sample: sample.preemptions) or 0.0
    if (tokens := _by_source(samples, None)) is not None:
        cached = sum(_by_source(samples, source) or 0.0 for source in _CACHED)
        return PromptHits(cached, tokens, True, preempted) if tokens else None
    tokens = increase(samples, lambda sample: sample.prefix_queries)
    found = increase(samples, lambda sample: sample.prefix_hits)
    return PromptHits(found, tokens, False, preempted) if found is not None and tokens else None


def unexplained_hits(facts: RunFacts) -> Finding | None:
    """A ShareGPT file is not judged: what its conversations share, and how many come again, is the file's own."""
    workload = facts.workload
    if workload.dataset == "sharegpt":
        return None
    hits, own = prompt_hits(facts.samples), own_perc(workload)
    perc = hits.perc if hits is not None else facts.metrics.get("prefix_hit_perc")
    most = own + UNEXPLAINED_HITS_PERC
    if perc is None or perc <= most:
        return None
    numbers: dict[str, Any] = {"prefix_hit_perc": perc, "own_perc": own, "threshold_perc": most, **span(facts.samples)}
    if hits is not None:
        counted = "prompts" if hits.by_prompt else "lookups"
        numbers |= {"hit_tokens": hits.hits, "prompt_tokens": hits.tokens, "counted_by": counted}
        numbers["preemptions"] = hits.preempted
    if hits is not None and hits.inflated:
        least = _without_preempted(hits, longest_request(workload))
        numbers["least_perc"] = least
        if least <= most:
            reason = (
                f"{perc:.0f} % of the prompt tokens look like prefix hits; the {hits.preempted:.0f} preempted requests "
                "alone can make that many, which this vLLM counts when it computes them again"
            )
            return Finding("prefix cache", reason, numbers, rejects=False)
    share = f"{perc:.0f} % of the prompt tokens came from the prefix cache, of which the workload explains {own:.0f} %"
    return Finding("prefix cache", share, numbers)


def own_perc(workload: Workload) -> float:
    """The share of its prompts that the workload's own prefixes make, at most."""
    shape = workload.shape
    prefix = float(shape.get("prefix_len") or 0)
    least_rest = float(shape.get("suffix_len", shape.get("input_len", 0))) * (1 - float(shape.get("range_ratio") or 0))
    return 100 * prefix / (prefix + least_rest) if prefix else 0.0


def longest_request(workload: Workload) -> float:
    """Tokens of its longest request with its answer, which is what a preempted one finds again at most."""
    shape = workload.shape
    stretch = 1 + float(shape.get("range_ratio") or 0)
    drawn = float(shape.get("suffix_len", shape.get("input_len", 0))) + float(shape.get("output_len") or 0)
    return float(shape.get("prefix_len") or 0) + stretch * drawn


def _without_preempted(hits: PromptHits, longest: float) -> float:
    """The share without all that the preempted requests can have added, to hits and lookups alike."""
    added = min(hits.preempted * longest, hits.hits)
    rest = hits.tokens - added
    return 100 * (hits.hits - added) / rest if rest > 0 else 0.0


def _by_source(samples: Sequence[SampleRecord], source: str | None) -> float | None:
    """All of them without a source. One that a page does not name yet stands at 0."""

    def told(sample: SampleRecord) -> float | None:
        everything = total_of(sample, "prompt_by_source")
        one = everything if source is None else total_of(sample, "prompt_by_source", source)
        return 0.0 if one is None and everything is not None else one

    return increase(samples, told)


def increase(samples: Sequence[SampleRecord], field: Callable[[SampleRecord], float | None]) -> float | None:
    """How far a counter rose from the first sample to the last; None where it was read once only, or started anew."""
    values = [value for sample in samples if (value := finite(field(sample))) is not None]
    if len(values) < 2 or any(later < earlier for earlier, later in pairwise(values)):
        return None
    return values[-1] - values[0]
