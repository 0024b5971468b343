"""A trial allocation: whether space can really be had. `df` does not know quotas, and on network volumes it often shows
the whole cluster's disks."""

import contextlib
import ctypes
import errno
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_STEP = 64 * 2**20
_BLOCK = 4 * 2**20
_LEAST = 2**20
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class Trial:
    """Of `asked` bytes `got` were had, and given back; `error` is what the kernel said to the next ones (errno), None
    where all were had or the time was up."""

    asked: int
    got: int
    error: int | None = None


def try_allocation(folder: Path, size: int, within_s: float) -> Trial:
    """Have `size` bytes reserved in `folder`, or written where its file system reserves nothing, and give them back.

    The file has no name from the start, so that it goes with this process however that ends. Raises OSError where no
    file can be made at all.
    """
    deadline = time.monotonic() + within_s
    descriptor = _nameless(folder)
    got = 0
    reserves, largest = True, _STEP
    try:
        while got < size and time.monotonic() < deadline:
            step = min(largest, size - got)
            try:
                if reserves:
                    _reserve(descriptor, got, step)
                else:
                    step = _write(descriptor, got, step)
            except OSError as error:
                if reserves and error.errno in _NOT_SUPPORTED:
                    reserves, largest = False, _BLOCK
                    continue
                if error.errno in (errno.ENOSPC, errno.EDQUOT) and step > _LEAST:
                    largest = step // 4  # how much it is that can be had
                    continue
                return Trial(size, got, error.errno)
            got += step
    finally:
        with contextlib.suppress(OSError):  # a network mount tells at close what it did not at the write
            os.close(descriptor)
    return Trial(size, got)


def _nameless(folder: Path) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (*_NOT_SUPPORTED, errno.EISDIR, errno.ENOENT):
            raise
    descriptor, name = tempfile.mkstemp(prefix=".llmtune-trial-", dir=folder)
    os.unlink(name)
    return descriptor


def _write(descriptor: int, start: int, length: int) -> int:
    """Bytes that reached the disk, or the server of a network mount, which tells of its quota only then. They are
    random, since zeros would be compressed away. Step by step, so that a slow mount keeps to the time."""
    written = os.pwrite(descriptor, os.urandom(length), start)
    os.fdatasync(descriptor)
    return written


def _reserve(descriptor: int, start: int, length: int) -> None:
    """fallocate(2) itself: posix_fallocate of the C library would write block by block where it is not supported."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(descriptor, 0, ctypes.c_int64(start), ctypes.c_int64(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
