"""Writes records: one connection, one lock, each call a transaction of its own unless `transaction` is open."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from store.errors import NotFound, StoreError, translated
from store.evaluation_job import EvaluationJobRecord
from store.records import AdapterRecord, ImportFileRecord, SampleRecord
from store.rows import Record, encode, from_row, shape, to_row
from store.thinning import BATCH, hold_back, thin_some


class Writer:
    """The writing end of a database; made by `store.database.open_writer`. Safe to call from several threads: sharing
    a connection of sqlite3 without a lock loses rows. Every method raises StoreError."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._depth = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a nested one joins the outer, as would another task of this thread: do not await within it.
        Other threads wait. IMMEDIATE, because a transaction that
        starts by reading cannot wait for the write lock later: SQLite answers busy at once."""
        with self._lock, translated(self.path):
            if self._depth:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # After SQLITE_FULL or an I/O error SQLite may have rolled back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def insert(self, record: Record) -> int:
        """Writes a new row and returns its id (a given `id` is kept)."""
        row = to_row(record)
        with self.transaction():
            cursor = self._connection.execute(_insert_sql(type(record)), row)
            if cursor.lastrowid is None:
                raise StoreError(f"{self.path}: the new row of {shape(type(record)).table} got no id")
            return cursor.lastrowid

    def insert_samples(self, samples: Sequence[SampleRecord]) -> None:
        """Writes all samples in one transaction."""
        rows = [to_row(sample) for sample in samples]
        if rows:
            with self.transaction():
                self._connection.executemany(_insert_sql(SampleRecord), rows)

    def insert_new_file(self, record: ImportFileRecord) -> bool:
        """Writes an imported file unless its content is there already; whether it was new."""
        sql = "SELECT 1 FROM import_file WHERE content_hash = ?"
        with self.transaction():
            if self._connection.execute(sql, (record.content_hash,)).fetchone():
                return False
            self.insert(record)
            return True

    def next_version(self, name: str) -> int:
        """The version that the next adapter of that name gets, after deleted ones, too. It is nobody else's only within
        the transaction in which the adapter is inserted."""
        with self.transaction():
            sql = f"SELECT coalesce(MAX(version), 0) + 1 FROM {shape(AdapterRecord).table} WHERE name = ?"
            found: int = self._connection.execute(sql, (name,)).fetchone()[0]
            return found

    def next_evaluation(self) -> int:
        """The number that the next evaluation gets, as work and as result. It is nobody else's only within the
        transaction in which it is inserted."""
        with self.transaction():
            sql = "SELECT max((SELECT coalesce(MAX(id), 0) FROM evaluation), (SELECT coalesce(MAX(id), 0) FROM {})) + 1"
            found: int = self._connection.execute(sql.format(shape(EvaluationJobRecord).table)).fetchone()[0]
            return found

    def known_adapter(self, name: str, signature: str) -> AdapterRecord | None:
        """The newest version of that name with these files, None where there is none or it was deleted."""
        known = shape(AdapterRecord)
        where = "name = ? AND signature = ? AND deleted_at IS NULL"
        sql = f"SELECT {', '.join(known.columns)} FROM {known.table} WHERE {where} "
        with self.transaction():
            row = self._connection.execute(sql + "ORDER BY version DESC LIMIT 1", (name, signature)).fetchone()
        return None if row is None else from_row(AdapterRecord, dict(zip(known.columns, row, strict=True)), self.path)

    def update(self, record_type: type[Record], id: int, **values: Any) -> None:
        """Sets the given fields of one row; of a run's `metrics` only those given. NotFound without such a row,
        ValueError for an unknown field."""
        row = encode(record_type, values)
        table = shape(record_type).table
        assignments = ", ".join(f"{column} = :{column}" for column in row)
        with self.transaction():
            sql = f"UPDATE {table} SET {assignments or 'id = id'} WHERE id = :row_id"
            if self._connection.execute(sql, row | {"row_id": id}).rowcount == 0:
                raise NotFound(f"There is no {table} {id} in {self.path}")

    def delete_session(self, id: int) -> None:
        """Removes the rows of a session: launches, runs, samples, events and servers go with it; files stay. Raises
        NotFound, and StoreError while its state is `running`."""
        with self.transaction():
            found = self._connection.execute("SELECT state FROM session WHERE id = ?", (id,)).fetchone()
            if found is None:
                raise NotFound(f"There is no session {id}: `llmtune sessions` lists them")
            if found[0] == "running":
                raise StoreError(f"Session {id} is running: stop it first (`llmtune stop {id}`), then delete it")
            self._connection.execute("DELETE FROM session WHERE id = ?", (id,))
            hold_back(self._connection)

    def thin(self, now: datetime, at_most: int = BATCH) -> bool:
        """Thin some old samples in one short transaction (store.thinning); whether there are more to come."""
        with self.transaction():
            return thin_some(self._connection, now, at_most)

    def close(self) -> None:
        """Closes the connection; further calls fail. Closing twice is fine."""
        with self._lock, translated(self.path):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _insert_sql(record_type: type[Record]) -> str:
    known = shape(record_type)
    names = ", ".join(known.columns)
    values = ", ".join(f":{column}" for column in known.columns)
    return f"INSERT INTO {known.table} ({names}) VALUES ({values})"
