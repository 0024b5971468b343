"""Pause, stop and skip, as a sweep meets them."""

import asyncio

import pytest

from tuning.sweeping.controls import Controls, Interrupted


async def test_a_stop_cuts_short_what_is_in_hand() -> None:
    controls = Controls()
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    cut = asyncio.create_task(controls.or_cut(work()))
    await asyncio.sleep(0)
    controls.stop("as asked")
    with pytest.raises(Interrupted, match="stop"):
        await asyncio.wait_for(cut, 1)
    assert ended.is_set()
    assert controls.stop_reason == "as asked"


async def test_a_skip_cuts_only_the_candidate_in_hand() -> None:
    controls = Controls()
    controls.begin(2)
    controls.skip(3)
    assert await controls.or_cut(asyncio.sleep(0, "done")) == "done"
    controls.skip(2)
    with pytest.raises(Interrupted, match="skip"):
        await asyncio.wait_for(controls.or_cut(asyncio.sleep(60)), 1)
    controls.begin(1)
    assert await controls.or_cut(asyncio.sleep(0, "next")) == "next"


async def test_a_pause_holds_until_resumed_or_stopped() -> None:
    controls = Controls()
    controls.pause()
    held = asyncio.create_task(controls.while_paused())
    await asyncio.sleep(0.02)
    assert not held.done()
    controls.resume()
    await asyncio.wait_for(held, 1)
    controls.pause()
    held = asyncio.create_task(controls.while_paused())
    await asyncio.sleep(0)
    controls.stop("enough")
    with pytest.raises(Interrupted):
        await asyncio.wait_for(held, 1)


async def test_a_skip_ends_the_hold_of_the_candidate_in_hand() -> None:
    controls = Controls()
    controls.begin(2)
    controls.pause()
    held = asyncio.create_task(controls.while_paused())
    await asyncio.sleep(0)
    controls.skip(2)
    with pytest.raises(Interrupted, match="skip"):
        await asyncio.wait_for(held, 1)


def test_of_several_reasons_to_stop_the_first_stands() -> None:
    controls = Controls()
    controls.stop("the budget is spent")
    controls.stop("the keeper was sent SIGTERM")
    assert controls.stop_reason == "the budget is spent"


async def test_an_error_of_the_work_itself_is_not_hidden() -> None:
    async def fails() -> None:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await Controls().or_cut(fails())
