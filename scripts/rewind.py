"""A session as it stood at a moment while it ran, from a database that was kept to its end: for pictures."""

import json
import sqlite3
from pathlib import Path

# What had not begun by then goes; what had not ended by then has not.
_BACK = (
    "DELETE FROM sample WHERE at > :at",
    "DELETE FROM event WHERE at > :at",
    "DELETE FROM run WHERE started_at > :at",
    "UPDATE run SET state = 'running', finished_at = NULL WHERE finished_at > :at",
    "DELETE FROM launch WHERE started_at > :at",
    "UPDATE launch SET finished_at = NULL, state = CASE WHEN ready_at > :at THEN 'starting' ELSE 'ready' END"
    " WHERE finished_at > :at",
    "DELETE FROM server WHERE started_at > :at",
    "UPDATE server SET stopped_at = NULL, exit_code = NULL,"
    " state = CASE WHEN ready_at > :at THEN 'starting' ELSE 'ready' END WHERE stopped_at > :at",
    "DELETE FROM session WHERE created_at > :at",
    "UPDATE session SET finished_at = NULL, message = NULL, state = 'running' WHERE finished_at > :at",
)


def rewind(database: Path, at: str) -> list[int]:
    """Set `database`, a copy, back to the UTC time `at`. The ids of the sessions that ran then."""
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("PRAGMA foreign_keys = ON")
        for statement in _BACK:
            connection.execute(statement, {"at": at})
        running = connection.execute("SELECT id, raw FROM session WHERE state = 'running'").fetchall()
        for number, raw in running:  # how long its keeper had worked is known of its end alone
            rest = {key: value for key, value in json.loads(raw).items() if key != "seconds_used"}
            connection.execute("UPDATE session SET raw = ? WHERE id = ?", (json.dumps(rest), number))
    connection.close()
    return [number for number, _ in running]
