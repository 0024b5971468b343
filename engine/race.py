"""Work that something else may cut short."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def unless(work: Awaitable[T], *watchers: Awaitable[None]) -> T:
    """The result of `work`, unless a watcher raises first: then its error, once `work` was cancelled and has ended.

    A watcher that returns ends its watch. Where both are there at once the work's own result or error counts.
    """
    task = asyncio.ensure_future(work)
    watching = {asyncio.ensure_future(watcher) for watcher in watchers}
    try:
        left = set(watching)
        while not task.done() and not any(_raised(watcher) for watcher in watching):
            finished, _ = await asyncio.wait({task, *left}, return_when=asyncio.FIRST_COMPLETED)
            left -= finished
    finally:
        for each in (task, *watching):
            each.cancel()
        await asyncio.wait({task, *watching})
    if task.cancelled():
        for watcher in watching:
            if _raised(watcher):
                watcher.result()
    return task.result()


def _raised(watcher: "asyncio.Future[None]") -> bool:
    return watcher.done() and not watcher.cancelled() and watcher.exception() is not None
