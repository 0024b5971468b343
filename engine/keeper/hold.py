"""The life of a keeper process: take the lock, answer on the socket, do the work, leave nothing behind."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from engine.keeper.control import ControlSocket, Handler
from engine.keeper.lock import KeeperLock
from engine.keeper.places import KeeperKind, keeper_places
from engine.process import adopt_orphans
from engine.records import EngineError


async def hold(
    data_dir: Path,
    kind: KeeperKind,
    number: int,
    commands: Mapping[str, Handler],
    work: Callable[[], Awaitable[None]],
    on_terminate: Callable[[str], None],
) -> None:
    """Run `work` as the one keeper of this session or server.

    `on_terminate` is called with a reason on SIGTERM or SIGINT and should make `work` end in good order. SIGHUP, which
    the end of an SSH session sends, is ignored. Raises EngineError where another keeper holds the lock.
    """
    places = keeper_places(data_dir, kind, number)
    lock = KeeperLock.acquire(places.lock)
    if lock is None:
        raise EngineError(f"{kind} {number} has a keeper already")
    # A server's children whose parent dies come to us and not to init, so that they are still found as descendants.
    adopt_orphans()
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number_of_signal in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number_of_signal, on_terminate, f"the keeper was sent {number_of_signal.name}")
    control = ControlSocket(places.socket, commands)
    try:
        await control.start()
        await work()
    finally:
        with contextlib.suppress(OSError):  # the socket's file may be gone with its folder
            await control.close()
        lock.release()
