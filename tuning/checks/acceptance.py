"""Whether a run is a measurement. What is rejected here is made once more and never averaged in.

No check looks at how good the result is. Each is in `tuning.checks`, with its threshold and the reason for it.
"""

from collections.abc import Callable, Iterable, Mapping

from engine.records import BenchOutcome
from tuning.checks.client import saturated
from tuning.checks.clocks import capped, limit_moved, throttled
from tuning.checks.finding import Finding, RunFacts
from tuning.checks.neighbours import came_or_went, stayed, unlisted_memory
from tuning.checks.prefix_cache import unexplained_hits
from tuning.checks.requests import far_answers, missing, tokens_asked
from tuning.checks.same_server import restarted, strange_requests, wrong_server
from tuning.records import Workload

CHECKS: tuple[Callable[[RunFacts], Finding | None], ...] = (
    wrong_server,
    restarted,
    missing,
    strange_requests,
    tokens_asked,
    far_answers,
    unexplained_hits,
    saturated,
    throttled,
    limit_moved,
    came_or_went,
    unlisted_memory,
)
"""What explains most comes first: requests fail where the server was started anew."""

NOTES: tuple[Callable[[RunFacts], Finding | None], ...] = (capped, stayed)


def findings(facts: RunFacts) -> tuple[Finding, ...]:
    """All that is found of a run, what rejects it first. One in which nothing succeeded is asked nothing further."""
    found: list[Finding] = []
    for check in CHECKS:
        if (finding := check(facts)) is not None:
            found.append(finding)
        if check is missing and finding is not None and not facts.metrics.get("requests_completed"):
            break
    if not rejects(found):
        found += [finding for note in NOTES if (finding := note(facts)) is not None]
    return tuple(sorted(found, key=lambda finding: not finding.rejects))


def rejects(found: Iterable[Finding]) -> str | None:
    """The one line that says why a run does not count; None where it does."""
    return next((finding.reason for finding in found if finding.rejects), None)


def rejection(workload: Workload, outcome: BenchOutcome, metrics: Mapping[str, float | None]) -> str | None:
    """The same of a run of which nothing but its result is known."""
    return rejects(findings(RunFacts(workload, outcome, metrics)))
