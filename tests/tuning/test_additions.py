"""What a person may add to a running sweep."""

from typing import Any

import pytest

from tests.tuning.examples import plan
from tuning.sweeping.additions import why_not_added

KNOWN: list[dict[str, Any]] = [{}, {"max-num-seqs": 64}]


def test_a_new_point_may_be_added() -> None:
    assert why_not_added(plan(), {"max-num-seqs": 128}, KNOWN) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"port": 8000}, "port cannot be varied"),
        ({"max-num-seqs": 0}, "max-num-seqs must be"),
        ({"max-num-seqs": 64}, "there already"),
        ({"max-num-seqs": 16}, "there already"),  # the baseline's own
        ({"max-num-batched-tokens": 8}, "below max-num-seqs 16"),
    ],
)
def test_what_cannot_be_launched_is_refused_in_a_line(settings: dict[str, Any], said: str) -> None:
    assert said in str(why_not_added(plan(), settings, KNOWN))


def test_an_a_a_session_takes_no_candidate() -> None:
    assert "against itself only" in str(why_not_added(plan(calibrate=True), {"max-num-seqs": 128}, [{}, {}]))
