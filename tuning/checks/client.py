"""Whether the load generator kept up: a saturated one makes a server look late, or its tokens 0.01 ms apart."""

from tuning.checks.finding import Finding, RunFacts

# Of one core: the client is one event loop. vLLM's own, saturated on purpose beside other programs on two cores, used
# 94.8 % (and was late by 103 ms); on an H200 with 64 streams it used 15 %.
CLIENT_CPU_PERC = 90.0
CLIENT_LAG_MS = 50.0
CLIENT_LAG_TOKENS = 5.0  # or as many of the server's own median gaps between tokens, if that is longer


def saturated(facts: RunFacts) -> Finding | None:
    """The client's CPU and the lag of its event loop, both over the load alone."""
    cpu, lag = facts.metrics.get("client_cpu_perc"), facts.metrics.get("client_lag_p99_ms")
    # A server on the CPU shares its cores with the client, which then waits its turn: 10 to 100 ms where a token takes
    # 40 ms (two cores, 135M parameters). That is no saturation; beside a GPU, at 8 ms a token, 50 ms would be.
    most_lag = max(CLIENT_LAG_MS, CLIENT_LAG_TOKENS * (facts.metrics.get("median_itl_ms") or 0.0))
    numbers = {
        "client_cpu_perc": cpu,
        "threshold_cpu_perc": CLIENT_CPU_PERC,
        "client_lag_p99_ms": lag,
        "threshold_lag_ms": most_lag,
    }
    if cpu is not None and cpu >= CLIENT_CPU_PERC:
        reason = f"the load generator was saturated ({cpu:.0f} % of a core); lower the rate or the concurrency"
        return Finding("client", reason, numbers)
    if lag is not None and lag > most_lag:
        return Finding("client", f"the load generator was late by {lag:.0f} ms (p99); leave it a free core", numbers)
    if facts.outcome.via == "command":
        reason = "the load generator's own load was not measured: this vLLM's benchmark runs as a command only"
        return Finding("client", reason, numbers, rejects=False)
    return None
