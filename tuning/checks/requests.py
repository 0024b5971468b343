"""Whether all requests came back, and with as many tokens as were asked for."""

import math
from collections.abc import Mapping, Sequence

from engine.bench.outcome import no_success
from engine.numbers import finite
from tuning.checks.finding import Answers, Finding, RunFacts
from tuning.plans.workload_args import forces_eos
from tuning.records import Workload

# Standard deviation of the lengths of answers that end by themselves, over their mean: 1.04 and 1.12 in two runs of 40
# questions to a chat model of 135M parameters, 1 of an exponential.
LENGTH_SPREAD = 1.1
# Greedy answers to the same prompts differ between configurations where rounding makes them part (batch sizes change
# the order of sums); taken to be a quarter of all, each then drawn anew. Of 80 on a CPU none did between max-num-seqs 8
# and 16. Of other prompts, or sampled, all do.
DRAWN_ANEW_GREEDY, DRAWN_ANEW = 0.25, 1.0
FAR_SDS = 4.0  # standard deviations: chance alone does so in 1 of 16,000 runs
FAR_AT_LEAST_PERC = 5.0  # less would hold rounding against a run of many thousand requests


def missing(facts: RunFacts) -> Finding | None:
    """Requests that failed, or did not come back at all."""
    completed = facts.metrics.get("requests_completed")
    if completed is None:
        return Finding("requests", "the benchmark gave no count of its requests")
    failed = facts.metrics.get("requests_failed") or 0.0
    asked = requests_sent(facts.workload)
    numbers = {"completed": completed, "failed": failed, "asked": asked, "errors": list(facts.outcome.errors)}
    if completed == 0:
        return Finding("requests", no_success(facts.outcome) or "no request succeeded", numbers)
    if not facts.metrics.get("duration_s"):
        return Finding("requests", "the benchmark gave no duration", numbers)
    if failed:
        why = f": {facts.outcome.errors[0]}" if facts.outcome.errors else ""
        return Finding("requests", f"{failed:.0f} of {completed + failed:.0f} requests failed{why}", numbers)
    if asked is not None and completed != asked:
        return Finding("requests", f"{completed:.0f} requests came back of {asked}", numbers)
    return None


def requests_sent(workload: Workload) -> int | None:
    """How many requests vLLM makes of the workload: whole prefixes only; None where the file may hold fewer."""
    if workload.dataset == "sharegpt":
        return None
    if workload.dataset == "prefix_repetition":
        prefixes = int(workload.shape["num_prefixes"])
        return workload.requests // prefixes * prefixes
    return workload.requests


def tokens_asked(facts: RunFacts) -> Finding | None:
    """Answers that may not end early must have exactly the length asked for, or lie in the range asked for."""
    workload, tokens = facts.workload, facts.metrics.get("output_tokens")
    completed = facts.metrics.get("requests_completed")
    length = workload.shape.get("output_len")
    if not forces_eos(workload) or length is None or tokens is None or completed is None:
        return None
    spread = float(workload.shape.get("range_ratio") or 0.0)
    least, most = completed * math.floor(length * (1 - spread)), completed * math.ceil(length * (1 + spread))
    if least <= tokens <= most:
        return None
    asked = f"{most:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
    return Finding(
        "tokens",
        f"{tokens:.0f} tokens were generated, {asked} were asked for; is max-model-len long enough?",
        {"output_tokens": tokens, "least": least, "most": most},
    )


def far_answers(facts: RunFacts) -> Finding | None:
    """Answers that end by themselves, far from the default's in the same block."""
    mine = answers_of(None, facts.seed, facts.metrics)
    return None if mine is None else far_from(facts.workload, mine, facts.baseline)


def far_from(workload: Workload, mine: Answers, baseline: Sequence[Answers]) -> Finding | None:
    """The same of any two: held against the default's runs of the same seed, which met the same prompts, or else all
    that it has made of the workload in the block. Answers of a set length are not compared."""
    alike = [each for each in baseline if each.seed == mine.seed]
    others = alike or list(baseline)
    if forces_eos(workload) or not others:
        return None
    requests = sum(each.requests for each in others)
    own, theirs = mine.tokens / mine.requests, sum(each.tokens for each in others) / requests
    apart = 100 * (own / theirs - 1)
    allowed = far_perc(workload, mine.requests, requests, same_prompts=bool(alike))
    if abs(apart) <= allowed:
        return None
    return Finding(
        "tokens far from the default's",
        f"{own:.0f} tokens an answer, {apart:+.0f} % against the {theirs:.0f} of the default in this block",
        {
            "output_tokens": mine.tokens,
            "tokens_per_answer": own,
            "baseline_tokens_per_answer": theirs,
            "apart_perc": apart,
            "threshold_perc": allowed,
            "same_prompts": bool(alike),
            "baseline_runs": [each.run_id for each in others],
        },
    )


def far_perc(workload: Workload, requests: float, others: float, *, same_prompts: bool) -> float:
    """From how many per cent on the mean length of so many answers is too far from that of so many others: FAR_SDS
    standard deviations of the difference of two means (LENGTH_SPREAD²(1/n + 1/m)), of which only the answers that
    differ at all vary."""
    greedy = same_prompts and workload.temperature == 0
    drawn = DRAWN_ANEW_GREEDY if greedy else DRAWN_ANEW
    sd = LENGTH_SPREAD * math.sqrt(drawn * (1 / requests + 1 / others))
    return max(FAR_AT_LEAST_PERC, 100 * FAR_SDS * sd)


def answers_of(run_id: int | None, seed: int, metrics: Mapping[str, float | None]) -> Answers | None:
    """A run's answers for others to be held against; None where they were not counted."""
    requests, tokens = finite(metrics.get("requests_completed")), finite(metrics.get("output_tokens"))
    return Answers(run_id or 0, seed, requests, tokens) if requests and tokens else None
