"""Whether a run is a measurement. What is rejected here is made once more and never averaged in."""

import math
from collections.abc import Mapping

from engine.bench.outcome import no_success
from engine.records import BenchOutcome
from tuning.records import Workload
from tuning.workload_args import forces_eos

UNEXPLAINED_HITS_PERC = 5.0  # above what the workload's own prefixes give
CLIENT_CPU_PERC = 95.0  # of one core: the client is one event loop
CLIENT_LAG_MS = 50.0
CLIENT_LAG_TOKENS = 5.0  # or as many of the server's own median gaps between tokens, if that is longer


def rejection(workload: Workload, outcome: BenchOutcome, metrics: Mapping[str, float | None]) -> str | None:
    """One line that says why the run does not count, or None. No rule looks at how good the result is."""
    completed = metrics.get("requests_completed")
    if completed is None:
        return "the benchmark gave no count of its requests"
    if completed == 0:
        return no_success(outcome)
    if not metrics.get("duration_s"):
        return "the benchmark gave no duration"
    checks = (_missing(workload, outcome, completed, metrics), _tokens(workload, completed, metrics))
    return next((reason for reason in (*checks, _cache(workload, metrics), _client(metrics)) if reason), None)


def requests_sent(workload: Workload) -> int | None:
    """How many requests vLLM makes of the workload: whole prefixes only; None where the file may hold fewer."""
    if workload.dataset == "sharegpt":
        return None
    if workload.dataset == "prefix_repetition":
        prefixes = int(workload.shape["num_prefixes"])
        return workload.requests // prefixes * prefixes
    return workload.requests


def _missing(
    workload: Workload, outcome: BenchOutcome, completed: float, metrics: Mapping[str, float | None]
) -> str | None:
    failed = metrics.get("requests_failed") or 0.0
    if failed:
        why = f": {outcome.errors[0]}" if outcome.errors else ""
        return f"{failed:.0f} of {completed + failed:.0f} requests failed{why}"
    asked = requests_sent(workload)
    if asked is not None and completed != asked:
        return f"{completed:.0f} requests came back of {asked}"
    return None


def _tokens(workload: Workload, completed: float, metrics: Mapping[str, float | None]) -> str | None:
    """Answers that may not end early must have exactly the length asked for, or lie in the range asked for."""
    length, tokens = workload.shape.get("output_len"), metrics.get("output_tokens")
    if not forces_eos(workload) or length is None or tokens is None:
        return None
    spread = float(workload.shape.get("range_ratio") or 0.0)
    least, most = completed * math.floor(length * (1 - spread)), completed * math.ceil(length * (1 + spread))
    if least <= tokens <= most:
        return None
    asked = f"{most:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
    return f"{tokens:.0f} tokens were generated, {asked} were asked for; is max-model-len long enough?"


def _cache(workload: Workload, metrics: Mapping[str, float | None]) -> str | None:
    """A ShareGPT file is not judged: what its conversations share, and how many come again, is the file's own."""
    hits = metrics.get("prefix_hit_perc")
    if hits is None or workload.dataset == "sharegpt":
        return None
    shape = workload.shape
    prefix = float(shape.get("prefix_len") or 0)
    least_rest = float(shape.get("suffix_len", shape.get("input_len", 0))) * (1 - float(shape.get("range_ratio") or 0))
    own = 100 * prefix / (prefix + least_rest) if prefix else 0.0
    if hits <= own + UNEXPLAINED_HITS_PERC:
        return None
    return f"{hits:.0f} % of the prompt tokens came from the prefix cache, of which the workload explains {own:.0f} %"


def _client(metrics: Mapping[str, float | None]) -> str | None:
    cpu, lag = metrics.get("client_cpu_perc"), metrics.get("client_lag_p99_ms")
    if cpu is not None and cpu >= CLIENT_CPU_PERC:
        return f"the load generator was saturated ({cpu:.0f} % of a core); lower the rate or the concurrency"
    # A server on the CPU shares its cores with the client, which then waits its turn: 10 to 100 ms where a token takes
    # 40 ms (two cores, 135M parameters). That is no saturation; beside a GPU, at 8 ms a token, 50 ms would be.
    if lag is not None and lag > max(CLIENT_LAG_MS, CLIENT_LAG_TOKENS * (metrics.get("median_itl_ms") or 0.0)):
        return f"the load generator was late by {lag:.0f} ms (p99); leave it a free core"
    return None
