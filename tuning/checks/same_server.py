"""Whether it was this server that answered, from the first request to the last, and only our requests."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from engine.numbers import finite
from engine.samples.sample_record import requests_finished
from engine.samples.window import started_anew
from store.records import SampleRecord
from tuning.checks.finding import Finding, RunFacts, span
from tuning.checks.prefix_cache import increase

# What /metrics says of its process may be a second off: the kernel tells the boot in whole seconds.
BEGAN_BEFORE_S = 5.0
# vLLM before 0.11 sends one request before the load, to see whether the server answers; a person may try one.
STRANGE_REQUESTS, STRANGE_PERC = 2.0, 2.0


def wrong_server(facts: RunFacts) -> Finding | None:
    """Somebody else listens on the server's port, or the process that tells the metrics is older than the server."""
    for when, seen in (("before", facts.before), ("after", facts.after)):
        if seen is None:
            continue
        if seen.strangers:
            numbers = {"at": seen.at, "port": seen.port, "ours": list(seen.ours), "strangers": list(seen.strangers)}
            share = "" if not seen.ours else " beside our server"
            who = ", ".join(seen.strangers[:3])
            return Finding("wrong server", f"port {seen.port} was listened on by {who}{share} {when} the run", numbers)
    for sample in _answered(facts.samples):
        told = finite(sample.raw.get("process_start"))
        began = facts.before.began if facts.before is not None else None
        if told is not None and began is not None and told < began - BEGAN_BEFORE_S:
            numbers = {"at": sample.at, "began": began, "told": told, "threshold_s": BEGAN_BEFORE_S}
            reason = f"the metrics are those of a process {began - told:.0f} s older than the server that was started"
            return Finding("wrong server", reason, numbers)
    return None


def restarted(facts: RunFacts) -> Finding | None:
    """Another process answered in the end than in the beginning, or the server's counters fell."""
    for before, after in pairwise(_answered(facts.samples)):
        if started_anew(before, after):
            numbers: dict[str, Any] = {
                "at": after.at,
                "before": before.at,
                "process_start": [before.raw.get("process_start"), after.raw.get("process_start")],
                "generation_tokens": [before.generation_tokens, after.generation_tokens],
                "requests_finished": [requests_finished(before), requests_finished(after)],
            }
            return Finding("restarted", f"the server was started anew meanwhile, by {after.at}", numbers)
    first, last = facts.before, facts.after
    if first is not None and last is not None and first.ours and last.ours and not set(first.ours) & set(last.ours):
        numbers = {"listened_before": list(first.ours), "listened_after": list(last.ours), "at": last.at}
        return Finding("restarted", "the server was started anew meanwhile: other processes of it listen", numbers)
    return None


def strange_requests(facts: RunFacts) -> Finding | None:
    """The server's own count of requests that ended, held against those that the benchmark had answered."""
    samples = _answered(facts.samples)
    counted, done = increase(samples, requests_finished), facts.metrics.get("requests_completed")
    made = increase(samples, lambda sample: sample.generation_tokens)
    if counted is None or done is None or (not counted and made):
        return None  # a front end that counts tokens only
    sent = done + (facts.metrics.get("requests_failed") or 0.0)
    allowed = max(STRANGE_REQUESTS, STRANGE_PERC / 100 * sent)
    numbers = {"server_counted": counted, "answered": done, "sent": sent, "threshold": allowed, **span(samples)}
    if counted < done - allowed:
        reason = f"the server counts {counted:.0f} requests of the {done:.0f} that were answered: another answered them"
        return Finding("wrong server", reason, numbers)
    if counted > sent + allowed:
        reason = f"the server ended {counted:.0f} requests, {sent:.0f} of them ours: somebody else used it meanwhile"
        return Finding("others' requests", reason, numbers)
    return None


def _answered(samples: Sequence[SampleRecord]) -> list[SampleRecord]:
    """Those with anything that tells one life of a server from another."""
    return [
        sample
        for sample in samples
        if "process_start" in sample.raw
        or sample.generation_tokens is not None
        or requests_finished(sample) is not None
    ]
