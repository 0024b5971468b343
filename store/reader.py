"""Reads records: a connection that cannot write, and the questions that screens, commands and keepers ask."""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from store.errors import NotFound, translated
from store.records import (
    EventRecord,
    LaunchRecord,
    RunKind,
    RunRecord,
    SampleRecord,
    ServerRecord,
    SessionRecord,
)
from store.rows import R, from_row, shape

ACTIVE_SERVER_STATES = ("starting", "ready", "stopping")


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """How many launches, and how many measured runs, of one session are in each state; absent states have none."""

    launches: dict[str, int]
    runs: dict[str, int]


class Reader:
    """The reading end of a database; made by `store.database.open_reader`. Safe to call from several threads. Every
    method raises StoreError. Each answer is fetched whole, so no read lock outlives a call."""

    def __init__(self, connection: sqlite3.Connection, path: Path, roll_back: Callable[[], None]) -> None:
        """`roll_back` ends the transaction that a killed writer has left in the file."""
        self.path = path
        self._roll_back = roll_back
        self._connection = connection
        self._connection.row_factory = sqlite3.Row
        self._lock = threading.Lock()

    def sessions(self) -> list[SessionRecord]:
        """All sessions, oldest first."""
        return self._select(SessionRecord)

    def session(self, id: int) -> SessionRecord:
        """One session; NotFound without it."""
        found = self._select(SessionRecord, "id = ?", (id,))
        if not found:
            raise NotFound(f"There is no session {id}: `llmtune sessions` lists them")
        return found[0]

    def find_session(self, word: str) -> SessionRecord:
        """The session that a person means: an id, a name (the newest of that name) or `last`; else NotFound."""
        word = word.strip()
        questions: list[tuple[str, tuple[Any, ...]]] = [("name = ?", (word,))]
        if word.isascii() and word.isdigit() and len(word) < 19:  # SQLite's integers end at 2^63
            questions.insert(0, ("id = ?", (int(word),)))
        if word == "last":
            questions.append(("1", ()))
        for where, values in questions:
            if found := self._select(SessionRecord, where, values, newest=1):
                return found[0]
        raise NotFound(f"There is no session {word!r}: `llmtune sessions` lists them")

    def progress(self) -> dict[int, SessionProgress]:
        """Session id → progress, for sessions that have a launch; two queries, answered from indices alone."""
        found: dict[int, SessionProgress] = {}
        launches = "SELECT session_id, state, COUNT(*) FROM launch GROUP BY session_id, state"
        for session_id, state, count in self._rows(launches):
            found.setdefault(session_id, SessionProgress({}, {})).launches[state] = count
        runs = "SELECT session_id, state, COUNT(*) FROM run WHERE kind = 'measured' GROUP BY session_id, state"
        for session_id, state, count in self._rows(runs):
            found.setdefault(session_id, SessionProgress({}, {})).runs[state] = count
        return found

    def servers(self, session_id: int | None = None, active: bool = False) -> list[ServerRecord]:
        """Servers in the order of their start: all, or those of a session; with `active`, those not at an end."""
        where, values = _all_of(session_id=session_id)
        if active:
            marks = ", ".join("?" for _ in ACTIVE_SERVER_STATES)
            where, values = f"{where} AND state IN ({marks})", (*values, *ACTIVE_SERVER_STATES)
        return self._select(ServerRecord, where, values)

    def server(self, id: int) -> ServerRecord:
        """One server; NotFound without it."""
        found = self._select(ServerRecord, "id = ?", (id,))
        if not found:
            raise NotFound(f"There is no server {id}: `llmtune server list` lists them")
        return found[0]

    def launches(self, session_id: int) -> list[LaunchRecord]:
        """The launches of a session, in the order they were made."""
        return self._select(LaunchRecord, "session_id = ?", (session_id,))

    def runs(self, session_id: int, kind: RunKind | None = None, with_raw: bool = False) -> list[RunRecord]:
        """The runs of a session, in the order they were made. `metrics` has every metric, None where it was not
        measured; `raw`, which is long, is empty unless asked for."""
        where, values = _all_of(session_id=session_id, kind=kind)
        if with_raw:
            return self._select(RunRecord, where, values)
        # `limited_by` stands behind `raw` in its row: it is read from an index that holds it too.
        said: dict[int, str | None] = {}
        for id, sentence in self._rows("SELECT id, limited_by FROM run WHERE session_id = ?", (session_id,)):
            said[id] = sentence
        return self._select(RunRecord, where, values, leave_out=("raw", "limited_by"), added={"limited_by": said})

    def samples(
        self,
        server_id: int | None = None,
        run_id: int | None = None,
        since: str | None = None,
        limit: int | None = None,
    ) -> list[SampleRecord]:
        """Samples, oldest first; only those after `since` (a time of `utc_now`); with `limit`, the newest so many."""
        where, values = _all_of(server_id=server_id, run_id=run_id)
        if since is not None:
            where, values = f"{where} AND at > ?", (*values, since)
        return self._select(SampleRecord, where, values, newest=limit, order="at, id")

    def events(
        self, session_id: int | None = None, server_id: int | None = None, limit: int | None = 50
    ) -> list[EventRecord]:
        """The newest `limit` events, the newest last."""
        where, values = _all_of(session_id=session_id, server_id=server_id)
        return self._select(EventRecord, where, values, newest=limit)

    def version(self) -> int:
        """A number that differs from its last value when anyone has committed since. It says nothing across readers
        (`PRAGMA data_version` counts for one connection)."""
        found: int = self._rows("PRAGMA data_version")[0][0]
        return found

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

    def _select(
        self,
        record_type: type[R],
        where: str = "1",
        values: Sequence[Any] = (),
        *,
        order: str = "id",
        newest: int | None = None,
        leave_out: tuple[str, ...] = (),
        added: Mapping[str, Mapping[int, Any]] | None = None,
    ) -> list[R]:
        """Rows in ascending `order`; with `newest`, only so many of its end. `added` holds, by the row's id, columns
        that were left out here."""
        known = shape(record_type)
        columns = ", ".join(column for column in known.columns if column not in leave_out)
        backwards = ", ".join(f"{column} DESC" for column in order.split(", "))
        sql = f"SELECT {columns} FROM {known.table} WHERE {where} ORDER BY "
        if newest is None:
            rows = self._rows(sql + order, values)
        else:
            rows = self._rows(f"{sql}{backwards} LIMIT ?", (*values, newest))[::-1]
        found = [dict(row) for row in rows]
        for column, by_id in (added or {}).items():
            for row in found:
                row[column] = by_id.get(row["id"])
        return [from_row(record_type, row, self.path) for row in found]

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self._lock, translated(self.path):
            try:
                return self._connection.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                # A writer with a rollback journal was killed after this reader was opened.
                if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
                    raise
            self._roll_back()
            return self._connection.execute(sql, values).fetchall()


def _all_of(**wanted: Any) -> tuple[str, tuple[Any, ...]]:
    """A WHERE clause for the columns whose wanted value is not None; all rows where none is."""
    given = {column: value for column, value in wanted.items() if value is not None}
    return " AND ".join(["1", *(f"{column} = ?" for column in given)]), tuple(given.values())
