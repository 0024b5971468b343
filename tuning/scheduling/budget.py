"""What a plan will cost, and when it has cost enough."""

from collections.abc import Mapping, Sequence

from tuning.records import Candidate, Estimate, Plan
from tuning.scheduling.schedule import baseline_launches

SECONDS_PER_HOUR = 3600.0


def estimate(
    plan: Plan,
    candidates: Sequence[Candidate],
    seconds_per_launch: float,
    seconds_per_run: float | Mapping[str, float],
    basis: str,
) -> Estimate:
    """Cost of carrying out every block with every candidate (`candidates` holds the baseline too).

    `seconds_per_launch` is from start to ready and from stop to gone; `seconds_per_run` a whole run, warm-ups like
    measured ones, for all workloads or by workload name. `basis` says for a person where the two come from. `points`
    counts the candidates without the baseline.
    """
    points = sum(candidate.index != 0 for candidate in candidates)
    launches = plan.decide.blocks * (points + baseline_launches(points))
    runs = 0
    run_seconds = 0.0
    for workload in plan.workloads:
        count = launches * (workload.warmup + workload.repeats)
        each = seconds_per_run[workload.name] if isinstance(seconds_per_run, Mapping) else seconds_per_run
        runs += count
        run_seconds += count * each
    hours = (launches * seconds_per_launch + run_seconds) / SECONDS_PER_HOUR
    price = plan.budget.gpu_price_per_hour
    return Estimate(points, launches, runs, hours, None if price is None else hours * price, basis)


def exhausted(plan: Plan, seconds_used: float) -> str | None:
    """One line that says which part of the budget is used up, or None."""
    hours, limits = seconds_used / SECONDS_PER_HOUR, plan.budget
    if limits.hours is not None and hours >= limits.hours:
        return f"the budget of {limits.hours:g} hours is used up ({hours:.2f} h); raise [budget] hours to go on"
    if limits.money is not None and limits.gpu_price_per_hour is not None:
        spent = hours * limits.gpu_price_per_hour
        if spent >= limits.money:
            return f"the budget of {limits.money:g} is spent ({spent:.2f} so far); raise [budget] money to go on"
    return None
