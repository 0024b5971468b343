import pytest

from tests.tuning.examples import plan, prefix_workload, random_workload
from tuning.plans.grid import candidates
from tuning.records import Budget, Decide
from tuning.scheduling.budget import estimate, exhausted

TWO = plan(
    workloads=(random_workload(warmup=1, repeats=3), prefix_workload(warmup=0, repeats=2)), decide=Decide(blocks=4)
)


def test_an_estimate_counts_launches_and_all_runs() -> None:
    found = estimate(TWO, candidates(TWO)[0], 100, 10, "guessed")
    assert (found.points, found.launches, found.runs) == (2, 12, 72)
    assert found.hours == pytest.approx((12 * 100 + 72 * 10) / 3600)
    assert (found.money, found.basis) == (None, "guessed")


def test_each_workload_may_take_its_own_time() -> None:
    found = estimate(TWO, candidates(TWO)[0], 0, {"chat": 10, "prefix": 100}, "")
    assert found.hours == pytest.approx(12 * (4 * 10 + 2 * 100) / 3600)


def test_money_follows_from_the_price() -> None:
    priced = plan(budget=Budget(gpu_price_per_hour=2.0))
    found = estimate(priced, candidates(priced)[0], 600, 0, "")
    assert found.money == pytest.approx(2.0 * 6 * 600 / 3600)


@pytest.mark.parametrize(
    ("budget", "seconds", "said"),
    [
        (Budget(), 1e9, None),
        (Budget(hours=2), 7199, None),
        (Budget(hours=2), 7200, "budget of 2 hours is used up"),
        (Budget(gpu_price_per_hour=0.5, money=1), 7199, None),
        (Budget(gpu_price_per_hour=0.5, money=1), 7200, "budget of 1 is spent"),
        (Budget(money=1), 1e9, None),
    ],
)
def test_a_budget_is_used_up_by_hours_or_by_money(budget: Budget, seconds: float, said: str | None) -> None:
    found = exhausted(plan(budget=budget), seconds)
    assert (found is None) if said is None else (found is not None and said in found)
