import itertools
import random

import pytest

from tuning.judgement.pareto import default_latency, optimal, pareto
from tuning.records import Candidate, CandidateResult, Summary


def result(index: int, **means: float | None) -> CandidateResult:
    summaries = {name: Summary(2, 4, value, None, None, None) for name, value in means.items()}
    return CandidateResult(Candidate(index, f"c{index}", {}), "chat", summaries, {})


def test_a_point_that_another_beats_in_both_is_not_on_the_front() -> None:
    points = pareto(
        [
            result(0, total_tok_per_s=100, p99_ttft_ms=50),
            result(1, total_tok_per_s=120, p99_ttft_ms=40),
            result(2, total_tok_per_s=150, p99_ttft_ms=90),
            result(3, total_tok_per_s=140, p99_ttft_ms=95),
            result(4, total_tok_per_s=10, p99_ttft_ms=5),
        ],
        "total_tok_per_s",
        "p99_ttft_ms",
    )
    assert [(point.candidate, point.optimal) for point in points] == [
        (4, True),
        (1, True),
        (0, False),
        (2, True),
        (3, False),
    ]


def test_equals_stand_on_the_front_together() -> None:
    assert optimal([(100, 50), (100, 50), (100, 60), (90, 50)]) == {0, 1}


def test_the_front_is_that_of_the_definition() -> None:
    draw = random.Random(3)
    for _ in range(200):
        points = [(draw.randrange(6), draw.randrange(6)) for _ in range(8)]
        beaten = {
            i
            for i, j in itertools.permutations(range(8), 2)
            if points[j][0] >= points[i][0] and points[j][1] <= points[i][1] and points[j] != points[i]
        }
        assert optimal(points) == set(range(8)) - beaten


def test_what_lacks_one_of_the_two_is_left_out() -> None:
    points = pareto(
        [result(0, total_tok_per_s=1), result(1, total_tok_per_s=None, p99_ttft_ms=2), result(2)],
        "total_tok_per_s",
        "p99_ttft_ms",
    )
    assert points == ()
    assert optimal([]) == frozenset()


@pytest.mark.parametrize(
    ("limits", "measured", "chosen"),
    [
        (("mean_tpot_ms",), ("p99_ttft_ms", "mean_tpot_ms"), "mean_tpot_ms"),
        (("error_rate",), ("mean_ttft_ms", "p99_ttft_ms"), "p99_ttft_ms"),
        ((), ("mean_e2el_ms",), "mean_e2el_ms"),
        ((), ("client_lag_p99_ms", "total_tok_per_s"), None),
    ],
)
def test_the_latency_of_a_limit_goes_first(
    limits: tuple[str, ...], measured: tuple[str, ...], chosen: str | None
) -> None:
    assert default_latency([result(0, **dict.fromkeys(measured, 1.0))], limits) == chosen
