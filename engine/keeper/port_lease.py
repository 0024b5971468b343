"""Ports among our own keepers: a server binds its port only after half a minute of imports, and until then another
keeper would take the same one for free."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from engine.keeper.lock import KeeperLock
from engine.keeper.places import runtime_dir
from engine.processes.ports import free_port


@contextmanager
def leased_port(host: str, start: int = 8000, environ: Mapping[str, str] = os.environ) -> Iterator[int]:
    """The first port from `start` on that is free and that no other keeper of this user has leased; ours until the end
    of the block, or our death. Raises PortTaken where a thousand in a row are taken."""
    port = free_port(host, start)
    while (lock := _lease(port, environ)) is None:
        port = free_port(host, port + 1)
    try:
        yield port
    finally:
        lock.release()


@contextmanager
def holding_port(port: int, environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Lease a port that a person has chosen, as far as it can be: theirs is the choice."""
    lock = _lease(port, environ)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _lease(port: int, environ: Mapping[str, str]) -> KeeperLock | None:
    return KeeperLock.acquire(Path(runtime_dir(environ)) / f"port-{port}.lock")
