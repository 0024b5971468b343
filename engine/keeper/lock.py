"""One keeper for each session or server: a lock that the kernel drops when its holder dies, however it dies."""

import fcntl
import os
import time
from pathlib import Path

# Who only asks holds the lock for some microseconds. That must not turn away the one who wants it.
ACQUIRE_WITHIN_S = 0.5


class KeeperLock:
    """An exclusive flock(2) on a file, held as long as this object's descriptor is open.

    The file itself may stay behind after a crash; it means nothing without the lock. The descriptor is not inherited,
    so a server that outlives its keeper cannot hold the lock for it. A shared lock on the folder keeps systemd-tmpfiles
    from clearing what is in use (tmpfiles.d(5)).
    """

    def __init__(self, descriptor: int, folder: int) -> None:
        self._descriptors = (descriptor, folder)

    @classmethod
    def acquire(cls, path: Path) -> "KeeperLock | None":
        """The lock, or None where another process holds it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + ACQUIRE_WITHIN_S
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _try(folder, fcntl.LOCK_SH)
        return cls(descriptor, folder)

    def release(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether some living process holds the lock. A shared lock is tried, so that two askers do not meet each other."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
