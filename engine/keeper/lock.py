"""One keeper for each session or server: a lock that the kernel drops when its holder dies, however it dies."""

import fcntl
import os
from pathlib import Path


class KeeperLock:
    """An exclusive flock(2) on a file, held as long as this object's descriptor is open.

    The file itself may stay behind after a crash; it means nothing without the lock. The descriptor is not inherited,
    so a server that outlives its keeper cannot hold the lock for it.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    @classmethod
    def acquire(cls, path: Path) -> "KeeperLock | None":
        """The lock, or None where another process holds it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return cls(descriptor, path)

    def release(self) -> None:
        os.close(self._descriptor)


def is_held(path: Path) -> bool:
    """Whether some living process holds the lock. A shared lock is tried, so that two askers do not meet each other."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
