"""Work that a watcher may cut short."""

import asyncio

import pytest

from engine.race import unless


async def fail_after(seconds: float, error: Exception) -> None:
    await asyncio.sleep(seconds)
    raise error


async def test_work_that_ends_first_gives_its_result_and_the_watch_is_over() -> None:
    ended = asyncio.Event()

    async def watch() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    assert await unless(asyncio.sleep(0.01, "result"), watch()) == "result"
    assert ended.is_set()


async def test_a_watcher_that_raises_cuts_the_work_short_after_it_cleaned_up() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append("yes")

    with pytest.raises(ValueError, match="dead"):
        await asyncio.wait_for(unless(work(), asyncio.sleep(60), fail_after(0.01, ValueError("dead"))), 5)
    assert cleaned == ["yes"]


async def test_a_watcher_that_returns_ends_its_watch_only() -> None:
    assert await unless(asyncio.sleep(0.05, 1), asyncio.sleep(0)) == 1


async def test_an_error_of_the_work_is_its_own() -> None:
    with pytest.raises(KeyError):
        await unless(fail_after(0, KeyError("k")), asyncio.sleep(60))


async def test_to_cancel_it_cancels_the_work() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(unless(work(), asyncio.sleep(60)))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
