"""What can go wrong with the store, each as one line that says what to do, and the one place that maps SQLite's codes.

Codes: https://sqlite.org/rescode.html; the low byte of an extended code is its primary code.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store.file_system import can_write


class StoreError(Exception):
    """The store cannot do what was asked. `str()` is one line for a person."""


class NewerDatabase(StoreError):
    """The file was written by a newer llmtune; it was not touched."""


class ReadOnlyStore(StoreError):
    """The file, its folder or its file system may not be written."""


class StoreFull(StoreError):
    """No space is left for a write; what was committed before stays."""


class StoreLocked(StoreError):
    """Another process held the file for longer than we wait."""


class DamagedStore(StoreError):
    """The file is not a database, or parts of it are missing or overwritten."""


class NotFound(StoreError):
    """There is no such session, server, row or database."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns SQLite's errors about the database at `path` into a StoreError. Errors of use (a closed connection, a
    value that cannot be bound) carry no code of SQLite and pass unchanged."""
    try:
        yield
    except sqlite3.Error as error:
        code: int | None = getattr(error, "sqlite_errorcode", None)
        if code is None:
            raise
        raise store_error(code, str(error), path) from error


def store_error(code: int, text: str, path: Path) -> StoreError:
    """The error for SQLite's (extended) result code `code` with its message `text`."""
    primary = code & 0xFF
    if path.is_dir():
        return StoreError(f"{path} is a folder where the database should be: move it away")
    if primary == sqlite3.SQLITE_FULL or (primary in _PERHAPS_FULL and _no_space(path.parent)):
        return full(path)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return read_only(path)
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path, text)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(f"{path} is held by another process: end what holds it (`fuser {path}`) and try again")
    if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        return _cannot_open(path, text)
    if primary == sqlite3.SQLITE_IOERR:
        return StoreError(
            f"The disk under {path} failed ({text}): check mount, quota and space (`df -h {path.parent}`)"
        )
    if primary == sqlite3.SQLITE_CONSTRAINT:
        return StoreError(f"The row does not fit the others in {path} ({text}): was its session deleted meanwhile?")
    return StoreError(f"{path}: {text}")


def full(path: Path) -> StoreFull:
    return StoreFull(f"No space is left for {path}: free some (`df -h {path.parent}`); finished results are kept")


def read_only(path: Path) -> ReadOnlyStore:
    return ReadOnlyStore(f"{path} cannot be written: make file and folder writable, or name another with --data-dir")


def damaged(path: Path, detail: str) -> DamagedStore:
    return DamagedStore(
        f"{path} is damaged ({detail}): move it away to start anew; `sqlite3 FILE .recover` saves what can be read"
    )


def newer(path: Path) -> NewerDatabase:
    return NewerDatabase(f"{path} was written by a newer llmtune and was left untouched: update llmtune to use it")


def folder_error(error: OSError, path: Path) -> StoreError:
    """The error for a folder of the store that could not be made or entered."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return full(path)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return read_only(path)
    return StoreError(f"{path} cannot be used ({error.strerror}): name another folder with --data-dir")


# What SQLite answers, beside SQLITE_FULL, when a full file system refuses a write, the -shm file or a new journal.
_PERHAPS_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def _no_space(folder: Path) -> bool:
    try:
        facts = os.statvfs(folder)
    except OSError:  # the folder itself is gone or closed to us: not a matter of space
        return False
    return facts.f_blocks > 0 and facts.f_bavail * facts.f_frsize < 64 * 1024


def _cannot_open(path: Path, text: str) -> StoreError:
    if path.exists():
        return read_only(path)
    if not path.parent.exists():
        return NotFound(f"There is no folder {path.parent}: name another with --data-dir")
    if not can_write(path.parent):
        return read_only(path)
    return StoreError(f"{path} cannot be opened ({text}): check the folder, or name another with --data-dir")
