from typing import Any, cast

import pytest

from engine.keeper.journal import Journal
from engine.keeper.term import close_row


class Written:
    """What a journal was told."""

    lost: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.rows: list[dict[str, Any]] = []

    async def event(self, text: str, level: str) -> None:
        self.events.append((text, level))

    async def update(self, kind: type[Any], number: int, **fields: Any) -> None:
        self.rows.append(fields)


@pytest.mark.parametrize(
    ("state", "message", "said", "level"),
    [
        ("done", "", "done", "info"),
        ("done", "adapter a@1", "done: adapter a@1", "info"),
        ("stopped", "stopped, as asked, at step 4", "stopped, as asked, at step 4", "info"),
        ("failed", "the disk is full", "failed: the disk is full", "error"),
    ],
)
async def test_the_last_event_says_how_it_ended_once(state: str, message: str, said: str, level: str) -> None:
    written = Written()
    await close_row(cast(Journal, written), object, 1, state, message)
    assert written.events == [(said, level)]
    assert (written.rows[0]["state"], written.rows[0]["message"]) == (state, message or None)
