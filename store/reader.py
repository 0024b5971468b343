"""Reads records: a connection that cannot write, and the questions that screens, commands and keepers ask."""

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from store.errors import NotFound, translated
from store.lora_questions import LoraQuestions
from store.records import (
    ACTIVE_SERVER_STATES,
    EventRecord,
    ImportFileRecord,
    LaunchRecord,
    RunKind,
    RunRecord,
    RunState,
    SampleRecord,
    ServerRecord,
    SessionRecord,
    SessionState,
)
from store.rows import R, Remembered, from_row, shape
from store.spread import spread


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """How many launches, and how many measured runs, of one session are in each state; absent states have none."""

    launches: dict[str, int]
    runs: dict[str, int]


class RunLine(NamedTuple):
    """What a list shows of one run: cheap enough for ten thousand."""

    id: int
    launch_id: int
    block: int
    candidate: int
    slot: int
    workload: str
    kind: RunKind
    repeat: int
    state: RunState
    reason: str | None
    started_at: str | None
    finished_at: str | None
    total_tok_per_s: float | None
    p99_ttft_ms: float | None
    kv_peak_perc: float | None
    limited_by: str | None


class Reader(LoraQuestions):
    """The reading end of a database; made by `store.database.open_reader`. Safe to call from several threads. Every
    method raises StoreError. Each answer is fetched whole, so no read lock outlives a call."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, roll_back: Callable[[], None], remembers: bool = False
    ) -> None:
        """`roll_back` ends the transaction that a killed writer has left in the file. `remembers` keeps the sessions
        and servers it has read: for one who asks for the same again and again (store.rows.Remembered)."""
        self.path = path
        self._roll_back = roll_back
        self._connection = connection
        self._connection.row_factory = sqlite3.Row
        self._lock = threading.Lock()
        self._remembered = Remembered() if remembers else None

    def sessions(self, states: Sequence[SessionState] = ()) -> list[SessionRecord]:
        """All sessions, oldest first; with `states`, those in one of them."""
        marks = ", ".join("?" for _ in states)
        return self._select(SessionRecord, f"state IN ({marks})" if states else "1", tuple(states))

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

    def progress(self, sessions: Sequence[int] | None = None) -> dict[int, SessionProgress]:
        """Session id → progress, for those of `sessions` (None: of all) that have a launch; from indices alone."""
        among, values = "1", tuple[str, ...]()
        if sessions is not None:
            among, values = "session_id IN (SELECT value FROM json_each(?))", (json.dumps(list(sessions)),)
        found: dict[int, SessionProgress] = {}
        launches = f"SELECT session_id, state, COUNT(*) FROM launch WHERE {among} GROUP BY session_id, state"
        for session_id, state, count in self._rows(launches, values):
            found.setdefault(session_id, SessionProgress({}, {})).launches[state] = count
        measured = f"SELECT session_id, state, COUNT(*) FROM run WHERE {among} AND kind = 'measured'"
        runs = f"{measured} GROUP BY session_id, state"
        for session_id, state, count in self._rows(runs, values):
            found.setdefault(session_id, SessionProgress({}, {})).runs[state] = count
        return found

    def newest_session(self) -> SessionRecord | None:
        """The newest of those that have begun, or of all where none has."""
        for where in ("state <> 'waiting'", "1"):
            if found := self._select(SessionRecord, where, newest=1):
                return found[0]
        return None

    def marks(self, session_id: int) -> tuple[tuple[Any, ...], ...]:
        """Changes when something happens to the session's launches, runs or events, and is read from indices alone: how
        many launches and runs are in each state, and the newest event."""
        return tuple(
            tuple(row)
            for question in (
                "SELECT state, COUNT(*) FROM launch WHERE session_id = ? GROUP BY state",
                "SELECT kind, state, COUNT(*) FROM run WHERE session_id = ? GROUP BY kind, state",
                "SELECT MAX(id) FROM event WHERE session_id = ?",
            )
            for row in self._rows(question, (session_id,))
        )

    def servers(
        self, session_id: int | None = None, active: bool = False, newest: int | None = None
    ) -> list[ServerRecord]:
        """Servers in the order of their start: all, or those of a session; with `active`, those not at an end; with
        `newest`, only so many of the last."""
        where, values = _all_of(session_id=session_id)
        if active:
            marks = ", ".join("?" for _ in ACTIVE_SERVER_STATES)
            where, values = f"{where} AND state IN ({marks})", (*values, *ACTIVE_SERVER_STATES)
        return self._select(ServerRecord, where, values, newest=newest)

    def server_marks(self) -> tuple[int, int]:
        """How many servers there are and the newest's id: changes when one is started or deleted."""
        (count,), (newest,) = self._rows(
            "SELECT COUNT(*) FROM server UNION ALL SELECT coalesce(MAX(id), 0) FROM server"
        )
        return count, newest

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
        added = {"limited_by": self._limited_by(session_id)}
        return self._select(RunRecord, where, values, leave_out=("raw", "limited_by"), added=added)

    def run(self, id: int) -> RunRecord:
        """One run with its raw result; NotFound without it."""
        found = self._select(RunRecord, "id = ?", (id,))
        if not found:
            raise NotFound(f"There is no run {id}: was its session deleted?")
        return found[0]

    def evidence(self, session_id: int) -> dict[int, Any]:
        """Run id → what is kept under `evidence` in its raw result, of those that have any: what checks found."""
        sql = (
            "SELECT id, json_extract(raw, '$.evidence') FROM run "
            "WHERE session_id = ? AND instr(raw, '\"evidence\"') > 0 AND json_valid(raw)"
        )
        return {id: json.loads(found) for id, found in self._rows(sql, (session_id,)) if isinstance(found, str)}

    def launch(self, id: int) -> LaunchRecord:
        """One launch; NotFound without it."""
        found = self._select(LaunchRecord, "id = ?", (id,))
        if not found:
            raise NotFound(f"There is no launch {id}: was its session deleted?")
        return found[0]

    def run_lines(self, session_id: int) -> list[RunLine]:
        """The runs of a session as lines of a list, in the order they were made."""
        said = self._limited_by(session_id)
        columns = ", ".join(RunLine._fields[:-1])
        rows = self._rows(f"SELECT {columns} FROM run WHERE session_id = ? ORDER BY id", (session_id,))
        return [RunLine._make((*row, said.get(row[0]))) for row in rows]

    def _limited_by(self, session_id: int) -> dict[int, str]:
        """Run id → its sentence. The column stands behind `raw` in its row; it is read from an index that has it."""
        sql = "SELECT id, limited_by FROM run WHERE session_id = ? AND limited_by IS NOT NULL"
        found: dict[int, str] = {}
        for id, sentence in self._rows(sql, (session_id,)):
            found[id] = sentence
        return found

    def samples(
        self,
        server_id: int | None = None,
        run_id: int | None = None,
        since: str | None = None,
        limit: int | None = None,
        until: str | None = None,
        at_most: int | None = None,
    ) -> list[SampleRecord]:
        """Samples, oldest first; only those after `since` and not after `until` (times of `utc_now`); with `limit`, the
        newest so many.

        With `at_most` (2 or more, of one server or run), no more than that, evenly spread over the time: of each slot
        the newest, and the first and the last of all. They are chosen in the index alone, so the cost is that of those
        that are read, however many there are.
        """
        where, values = _all_of(server_id=server_id, run_id=run_id)
        if since is not None:
            where, values = f"{where} AND at > ?", (*values, since)
        if until is not None:
            where, values = f"{where} AND at <= ?", (*values, until)
        if at_most is not None:
            where, values = spread(self._rows, where, values, at_most)
        return self._select(SampleRecord, where, values, newest=limit, order="at, id")

    def events(
        self,
        session_id: int | None = None,
        server_id: int | None = None,
        limit: int | None = 50,
        training_id: int | None = None,
        evaluation_id: int | None = None,
    ) -> list[EventRecord]:
        """The newest `limit` events, the newest last."""
        of = {"session_id": session_id, "server_id": server_id}
        where, values = _all_of(**of, training_id=training_id, evaluation_id=evaluation_id)
        return self._select(EventRecord, where, values, newest=limit)

    def import_files(self, with_raw: bool = False, ids: Sequence[int] | None = None) -> list[ImportFileRecord]:
        """Files of results measured elsewhere, in the order they came: all, or those of `ids`. `raw`, which is long,
        only when asked for."""
        where, values = "1", tuple[str, ...]()
        if ids is not None:
            where, values = "id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        return self._select(ImportFileRecord, where, values, leave_out=() if with_raw else ("raw",))

    def import_marks(self) -> tuple[int, int]:
        """How many files were imported and the newest's id: changes when one is."""
        (count,), (newest,) = self._rows(
            "SELECT COUNT(*) FROM import_file UNION ALL SELECT coalesce(MAX(id), 0) FROM import_file"
        )
        return count, newest

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
        make = from_row
        if self._remembered is not None and record_type in (SessionRecord, ServerRecord):
            make = self._remembered.from_row
        return [make(record_type, row, self.path) for row in found]

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
