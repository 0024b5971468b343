"""When old samples are thinned beside the writing of new ones."""

from datetime import datetime

import pytest

from engine.keeper.journal import TRY_AGAIN_S
from engine.samples.thinner import EVERY_S, Thinner
from store.errors import DamagedStore, StoreFull


class Answers:
    """A writer whose `thin` gives these answers, one after another."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.asked = 0
        self._answers = iter(answers)

    def thin(self, now: datetime) -> bool:
        self.asked += 1
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_more_are_thinned_at_once_and_then_after_a_while() -> None:
    now = 0.0
    writer = Answers(True, True, False, False)
    thinner = Thinner(writer, lambda: now)  # type: ignore[arg-type]
    for _ in range(5):
        thinner.some()
    assert writer.asked == 3
    now = EVERY_S
    thinner.some()
    assert writer.asked == 4


def test_a_full_store_is_tried_again_later() -> None:
    now = 0.0
    writer = Answers(StoreFull("full"), False)
    thinner = Thinner(writer, lambda: now)  # type: ignore[arg-type]
    thinner.some()
    thinner.some()
    assert writer.asked == 1
    now = TRY_AGAIN_S
    thinner.some()
    assert writer.asked == 2


def test_what_does_not_pass_is_told_once() -> None:
    writer = Answers(DamagedStore("a page is gone"))
    thinner = Thinner(writer, lambda: 1e9)  # type: ignore[arg-type]
    with pytest.raises(DamagedStore):
        thinner.some()
    thinner.some()
    assert writer.asked == 1
