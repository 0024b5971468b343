"""The life of a keeper process: alone by its lock, deaf to the terminal's end, answering on its socket."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from engine.keeper.control import ControlSocket, Handler
from engine.keeper.journal import say
from engine.keeper.lock import KeeperLock
from engine.keeper.places import KeeperKind, keeper_places
from engine.processes.process import adopt_orphans
from engine.records import EngineError


class Keeper(Protocol):
    """What carries a session or server: its commands, its work, and how it is told to end in good order."""

    def commands(self) -> Mapping[str, Handler]: ...

    async def work(self) -> None: ...

    def terminate(self, reason: str) -> None: ...


@contextmanager
def only_keeper(data_dir: Path, kind: KeeperKind, number: int) -> Iterator[Path]:
    """Be the one keeper of this session or server; yields the path of its socket. What it knows of its rows must be
    read within: before, another keeper may still have written. Raises EngineError where another holds the lock."""
    places = keeper_places(data_dir, kind, number)
    lock = KeeperLock.acquire(places.lock)
    if lock is None:
        raise EngineError(f"{kind} {number} has a keeper already")
    try:
        yield places.socket
    finally:
        lock.release()


async def hold(keeper: Keeper, socket: Path) -> None:
    """Run the keeper's work, its commands on `socket`.

    SIGTERM and SIGINT end it through `terminate`; SIGHUP, which the end of an SSH session sends, is ignored.
    """
    try:
        # A server's children whose parent dies come to us and not to init, so that they are still found as descendants.
        adopt_orphans()
    except OSError as error:
        say(f"warning: orphans are found by their marker alone: {error.strerror}")
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, keeper.terminate, f"the keeper was sent {number.name}")
    control = ControlSocket(socket, keeper.commands())
    try:
        await control.start()
        await keeper.work()
    finally:
        with contextlib.suppress(OSError):  # the socket's file may be gone with its folder
            await control.close()
