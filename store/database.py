"""Opens the database: what is looked at before anything is written, and how each connection is set."""

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from store.errors import (
    NotFound,
    StoreError,
    folder_error,
    newer,
    read_only,
    translated,
)
from store.file_system import Mount, can_write, journal_mode, read_mounts
from store.private_files import make_private_folder, write_new_private
from store.reader import Reader
from store.schema import STEPS, Step, apply_steps, is_current, is_foreign, is_newer
from store.writer import Writer

FILE_NAME = "llmtune.db"

# Several keepers write to one file, each for milliseconds; a deletion of a long session takes seconds.
WRITER_TIMEOUT_S = 30.0
READER_TIMEOUT_S = 10.0


def open_writer(
    path: Path,
    *,
    steps: tuple[Step, ...] = STEPS,
    mounts: Iterable[Mount] | None = None,
    timeout_s: float = WRITER_TIMEOUT_S,
) -> Writer:
    """The writing end of the database at `path`, which is made, with its folder (mode 0700), where it does not exist,
    and brought up to date where it is older.

    `steps`, `mounts` (None: those of this process) and `timeout_s` (how long to wait for another's lock) are for tests.
    Raises NewerDatabase, without having touched the file, or another StoreError.
    """
    _make_folder(path.parent)
    # SQLite opens what it may not write for reading alone and would say so only at the first result.
    if not can_write(path.parent) or (path.exists() and not os.access(path, os.W_OK, effective_ids=True)):
        raise read_only(path)
    _refuse_newer(path, steps, timeout_s)
    _make_file(path)
    wanted = journal_mode(path, read_mounts() if mounts is None else mounts)
    with translated(path):
        connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        with translated(path):
            if wanted != "wal":
                # A file that comes from a local disk may be in WAL, and only exclusive locking opens that without the
                # shared memory which this file system may not have (https://sqlite.org/wal.html#noshm).
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            _require_ours(connection, path, steps)
            _set_journal(connection, wanted)
            connection.execute("PRAGMA foreign_keys = ON")
            _migrate(connection, path, steps)
    except BaseException:
        connection.close()
        raise
    return Writer(connection, path)


def open_reader(
    path: Path, *, steps: tuple[Step, ...] = STEPS, timeout_s: float = READER_TIMEOUT_S, remembers: bool = False
) -> Reader:
    """The reading end of the database at `path`; its connection cannot write. `remembers` is the Reader's.

    A file that is older, blank, or was left in mid-transaction by a killed writer is first put right by a writer. In a
    folder that cannot be written the answers may be those of the moment of opening.
    Raises NotFound where there is no file, NewerDatabase, or another StoreError.
    """
    if not path.exists():
        raise NotFound(f"Nothing is kept in {path.parent} yet: start a server or a sweep, or name another --data-dir")
    try:
        return _open_current(path, steps, timeout_s, remembers)
    except _NeedsWriter:
        open_writer(path, steps=steps).close()
    try:
        return _open_current(path, steps, timeout_s, remembers)
    except _NeedsWriter as error:
        raise read_only(path) from error


# A killed writer's journal is to be rolled back, or the shared memory of a WAL cannot be had.
_NOT_FOR_A_READER = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)


class _NeedsWriter(Exception):
    """The file cannot be read as it is; a writer would put it right."""


def _open_current(path: Path, steps: tuple[Step, ...], timeout_s: float, remembers: bool) -> Reader:
    connection = _connect_read_only(path, timeout_s, immutable=False)
    try:
        with translated(path):
            try:
                connection.execute("PRAGMA query_only = ON")
                current = is_current(connection, steps)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _NOT_FOR_A_READER:
                    raise
                if can_write(path.parent):
                    raise _NeedsWriter from error
                # In a folder that cannot be written the -shm file of WAL cannot be made
                # (https://sqlite.org/wal.html#readonly). With an empty WAL the file alone holds everything.
                connection.close()
                if _has_side_files(path):
                    raise
                connection = _connect_read_only(path, timeout_s, immutable=True)
                current = is_current(connection, steps)
            if not current:
                if is_newer(connection, steps):
                    raise newer(path)
                raise _NeedsWriter
    except BaseException:
        connection.close()
        raise
    return Reader(connection, path, lambda: open_writer(path, steps=steps).close(), remembers)


def _connect_read_only(path: Path, timeout_s: float, *, immutable: bool) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"
    with translated(path):
        return sqlite3.connect(address, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def _make_folder(folder: Path) -> None:
    try:
        make_private_folder(folder)
    except OSError as error:
        raise folder_error(error, folder) from error


def _make_file(path: Path) -> None:
    """SQLite would make it as the umask has it; its -wal, -shm and -journal get the mode of the file itself."""
    try:
        write_new_private(path, "")
    except FileExistsError:  # as it was made, by us or by the person
        return
    except OSError as error:
        raise folder_error(error, path) from error


def _refuse_newer(path: Path, steps: tuple[Step, ...], timeout_s: float) -> None:
    """Raises NewerDatabase having changed nothing, neither the file nor the folder.

    The look goes through SQLite and not through `open`: closing any other descriptor of the file would drop the locks
    that this process holds on it (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
    An immutable look makes no -shm file; where there is a journal, an ordinary one is needed to see what it holds.
    """
    try:
        if path.stat().st_size == 0:
            return
    except OSError:  # absent or closed to us: opening says which
        return
    connection = _connect_read_only(path, timeout_s, immutable=not _has_side_files(path))
    try:
        if is_newer(connection, steps):
            raise newer(path)
    except sqlite3.Error:
        # Damage, a lock, or a transaction to be rolled back, which a reader cannot do: the writer's own connection
        # meets it again, answers it, and looks at the version before it writes.
        return
    finally:
        connection.close()


def _has_side_files(path: Path) -> bool:
    """Whether there is a journal with something in it: content that is not, or not yet, in the file itself."""
    for suffix in ("-wal", "-journal"):
        side = path.with_name(path.name + suffix)
        if side.exists() and side.stat().st_size > 0:
            return True
    return False


def _require_ours(connection: sqlite3.Connection, path: Path, steps: tuple[Step, ...]) -> None:
    if is_newer(connection, steps):
        raise newer(path)
    if is_foreign(connection):
        raise StoreError(f"{path} is the database of another program: name another folder with --data-dir")


def _set_journal(connection: sqlite3.Connection, wanted: str) -> None:
    """Sets journal and durability of the connection. NORMAL loses no commit when a process dies, and under WAL none
    of the file's order when the machine does; a rollback journal needs FULL for that
    (https://sqlite.org/pragma.html#pragma_synchronous)."""
    actual = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if actual != wanted:
        try:
            actual = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
        except sqlite3.OperationalError as error:
            # Another has it open with a rollback journal, which is correct too, if slower.
            if wanted != "wal" or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
    if wanted != "wal":
        connection.execute("PRAGMA locking_mode = NORMAL")
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()  # the lock goes with the next access
    connection.execute(f"PRAGMA synchronous = {'NORMAL' if actual == 'wal' else 'FULL'}")


def _migrate(connection: sqlite3.Connection, path: Path, steps: tuple[Step, ...]) -> None:
    if is_current(connection, steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _require_ours(connection, path, steps)  # another program may have been here since the first look
        apply_steps(connection, steps)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
