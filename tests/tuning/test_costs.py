import pytest

from tests.tuning.examples import launch
from tuning.judgement.costs import Cost, cost_per_million
from tuning.metric_meaning import meaning
from tuning.records import RUN_METRICS, Summary
from tuning.scheduling.launch_counts import launch_counts


def test_a_million_tokens_at_the_price_of_the_hours_they_take() -> None:
    # 1,000 tok/s make 3.6 million tokens an hour.
    cost = cost_per_million(3.6, Summary(2, 6, 1000.0, 5.0, 900.0, 1200.0))
    assert cost == Cost(pytest.approx(1.0), pytest.approx(1 / 1.2), pytest.approx(1 / 0.9))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("summary", "cost"),
    [
        (None, None),
        (Summary(1, 1, None, None, None, None), None),
        (Summary(1, 1, 0.0, None, None, None), None),
        (Summary(1, 1, 1000.0, None, None, None), Cost(1.0, None, None)),
        (Summary(2, 2, 1000.0, 1e4, -3.0, 2003.0), Cost(1.0, None, None)),
    ],
)
def test_what_has_no_throughput_or_no_interval(summary: Summary | None, cost: Cost | None) -> None:
    assert cost_per_million(3.6, summary) == cost


def test_launches_are_counted_by_their_places() -> None:
    made = [launch(0, 0), launch(0, 0, slot=1), launch(0, 1, state="failed"), launch(0, 1, attempt=2), launch(1, 0)]
    counts = launch_counts(made, blocks=4, candidates=12)
    assert (counts.used, counts.starts, counts.failed) == (4, 5, 1)
    assert (counts.full, counts.grid) == (60, 52)
    assert counts.spared == pytest.approx(56 / 60)
    assert launch_counts([], 4, 0).spared == 1.0


@pytest.mark.parametrize("metric", RUN_METRICS)
def test_every_metric_has_its_meaning(metric: str) -> None:
    assert len(meaning(metric)) > 15
    assert not meaning("nothing")
