"""The tables, as numbered steps that are only ever added to: a step that was released is never changed again.

`PRAGMA user_version` counts the applied steps and `_sqlite_migrations` (sqlite-utils) names them; both are written in
the transaction of the steps themselves. The later of the two says whether a file is newer than this program.
"""

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from store.lora_tables import DELETED_ADAPTERS, EVALUATION_JOB_TABLES, EVALUATION_TABLES, LORA_TABLES

if TYPE_CHECKING:  # a fifth of a second to import, and needed only where a step is to be applied
    from sqlite_utils import Database

Step = Callable[["Database"], None]

MIGRATION_SET = "llmtune"

_TABLES = (
    """
    CREATE TABLE session (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        plan_toml TEXT NOT NULL,
        plan TEXT NOT NULL,
        candidates TEXT NOT NULL,
        seed INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        environment TEXT NOT NULL,
        started_at TEXT,
        finished_at TEXT,
        message TEXT,
        keeper_pid INTEGER,
        keeper_start_ticks INTEGER,
        boot_id TEXT,
        raw TEXT NOT NULL
    )""",
    """
    CREATE TABLE server (
        id INTEGER PRIMARY KEY,
        session_id INTEGER REFERENCES session(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        model TEXT NOT NULL,
        host TEXT NOT NULL,
        port INTEGER NOT NULL,
        command TEXT NOT NULL,
        env TEXT NOT NULL,
        log_path TEXT NOT NULL,
        marker TEXT NOT NULL,
        served_name TEXT,
        vllm_version TEXT,
        pid INTEGER,
        start_ticks INTEGER,
        boot_id TEXT,
        descendants TEXT NOT NULL,
        keeper_pid INTEGER,
        keeper_start_ticks INTEGER,
        started_at TEXT,
        ready_at TEXT,
        stopped_at TEXT,
        exit_code INTEGER,
        failure_class TEXT,
        failure TEXT,
        facts TEXT NOT NULL,
        raw TEXT NOT NULL
    )""",
    # A server's row may go without its launch: the results of the launch stay.
    """
    CREATE TABLE launch (
        id INTEGER PRIMARY KEY,
        session_id INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE,
        server_id INTEGER REFERENCES server(id) ON DELETE SET NULL,
        block INTEGER NOT NULL,
        position INTEGER NOT NULL,
        candidate INTEGER NOT NULL,
        slot INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        state TEXT NOT NULL,
        started_at TEXT,
        ready_at TEXT,
        finished_at TEXT,
        failure_class TEXT,
        failure TEXT,
        raw TEXT NOT NULL
    )""",
    """
    CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        session_id INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE,
        launch_id INTEGER NOT NULL REFERENCES launch(id) ON DELETE CASCADE,
        block INTEGER NOT NULL,
        candidate INTEGER NOT NULL,
        slot INTEGER NOT NULL,
        workload TEXT NOT NULL,
        kind TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        started_at TEXT,
        finished_at TEXT,
        total_tok_per_s REAL, output_tok_per_s REAL, requests_per_s REAL, error_rate REAL, goodput_per_s REAL,
        mean_ttft_ms REAL, median_ttft_ms REAL, p90_ttft_ms REAL, p99_ttft_ms REAL,
        mean_itl_ms REAL, median_itl_ms REAL, p90_itl_ms REAL, p99_itl_ms REAL,
        mean_tpot_ms REAL, median_tpot_ms REAL, p90_tpot_ms REAL, p99_tpot_ms REAL,
        mean_e2el_ms REAL, median_e2el_ms REAL, p90_e2el_ms REAL, p99_e2el_ms REAL,
        preemptions REAL, prefix_hit_perc REAL, kv_peak_perc REAL, running_peak REAL, waiting_peak REAL,
        gpu_mem_peak_gib REAL, gpu_power_mean_w REAL, energy_j_per_token REAL,
        client_cpu_perc REAL, client_lag_p99_ms REAL, duration_s REAL,
        requests_completed REAL, requests_failed REAL, input_tokens REAL, output_tokens REAL,
        raw TEXT NOT NULL
    )""",
    """
    CREATE TABLE sample (
        id INTEGER PRIMARY KEY,
        server_id INTEGER REFERENCES server(id) ON DELETE CASCADE,
        run_id INTEGER REFERENCES run(id) ON DELETE CASCADE,
        at TEXT NOT NULL,
        running REAL,
        waiting REAL,
        kv_perc REAL,
        preemptions REAL,
        prompt_tokens REAL,
        generation_tokens REAL,
        prefix_queries REAL,
        prefix_hits REAL,
        gpu_mem_used_gib REAL,
        gpu_util_perc REAL,
        gpu_power_w REAL,
        gpu_energy_j REAL,
        raw TEXT NOT NULL
    )""",
    """
    CREATE TABLE event (
        id INTEGER PRIMARY KEY,
        session_id INTEGER REFERENCES session(id) ON DELETE CASCADE,
        server_id INTEGER REFERENCES server(id) ON DELETE CASCADE,
        at TEXT NOT NULL,
        level TEXT NOT NULL,
        text TEXT NOT NULL,
        raw TEXT NOT NULL
    )""",
)

# One for each question of the reader, and one for each foreign key: a cascade without it reads the whole child table.
_INDICES = (
    "CREATE INDEX server_by_session ON server (session_id)",
    "CREATE INDEX server_by_state ON server (state)",
    "CREATE INDEX launch_by_session ON launch (session_id, state)",
    "CREATE INDEX launch_by_server ON launch (server_id)",
    "CREATE INDEX run_by_session ON run (session_id, kind, state)",
    "CREATE INDEX run_by_launch ON run (launch_id)",
    "CREATE INDEX sample_by_server ON sample (server_id, at)",
    "CREATE INDEX sample_by_run ON sample (run_id, at)",
    "CREATE INDEX event_by_session ON event (session_id)",
    "CREATE INDEX event_by_server ON event (server_id)",
)


def step_001_tables(db: "Database") -> None:
    for statement in _TABLES:
        db.execute(statement)


def step_002_indices(db: "Database") -> None:
    for statement in _INDICES:
        db.execute(statement)


def step_003_history(db: "Database") -> None:
    """What limited a run; how far samples were thinned; an index for what goes on now."""
    # A column that is added stands behind `raw`, whose pages would have to be walked for each run, however long it is:
    # the reader takes it from the index.
    db.execute("ALTER TABLE run ADD COLUMN limited_by TEXT")
    db.execute("CREATE INDEX run_limited_by ON run (session_id, id, limited_by)")
    db.execute("CREATE TABLE thinned (step TEXT PRIMARY KEY, sample_id INTEGER NOT NULL) WITHOUT ROWID")
    db.execute("CREATE INDEX session_by_state ON session (state)")


def step_004_import_file(db: "Database") -> None:
    """Files of results that were measured elsewhere, each content once."""
    db.execute(
        """
        CREATE TABLE import_file (
            id INTEGER PRIMARY KEY,
            path TEXT NOT NULL,
            content_hash TEXT NOT NULL UNIQUE,
            size INTEGER NOT NULL,
            runs INTEGER NOT NULL,
            imported_at TEXT NOT NULL,
            raw TEXT NOT NULL
        )"""
    )


def step_005_lora(db: "Database") -> None:
    """Datasets, trainings and the registry of adapters; events of a training."""
    for statement in LORA_TABLES:
        db.execute(statement)


def step_006_evaluation(db: "Database") -> None:
    """What adapters were measured to do on data they never saw."""
    for statement in EVALUATION_TABLES:
        db.execute(statement)


def step_007_evaluation_job(db: "Database") -> None:
    """Evaluations as work that a keeper carries out, with its progress and its events."""
    for statement in EVALUATION_JOB_TABLES:
        db.execute(statement)


def step_008_deleted_adapters(db: "Database") -> None:
    """When the files of a version of an adapter were deleted."""
    for statement in DELETED_ADAPTERS:
        db.execute(statement)


STEPS: tuple[Step, ...] = (
    step_001_tables,
    step_002_indices,
    step_003_history,
    step_004_import_file,
    step_005_lora,
    step_006_evaluation,
    step_007_evaluation_job,
    step_008_deleted_adapters,
)


def applied_steps(connection: sqlite3.Connection) -> tuple[int, frozenset[str]]:
    """`(user_version, names of the applied steps)`; `(0, empty)` for a blank file. Writes nothing."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone():
        return version, frozenset()
    rows = connection.execute("SELECT name FROM _sqlite_migrations WHERE migration_set = ?", (MIGRATION_SET,))
    return version, frozenset(name for (name,) in rows.fetchall())


def is_newer(connection: sqlite3.Connection, steps: tuple[Step, ...] = STEPS) -> bool:
    """Whether the file has steps that this program does not know."""
    version, names = applied_steps(connection)
    return version > len(steps) or bool(names - {step.__name__ for step in steps})


def is_current(connection: sqlite3.Connection, steps: tuple[Step, ...] = STEPS) -> bool:
    """Whether the file has exactly this program's steps."""
    return applied_steps(connection) == (len(steps), frozenset(step.__name__ for step in steps))


def is_foreign(connection: sqlite3.Connection) -> bool:
    """Whether the file holds tables, but none of ours: the database of another program."""
    version, names = applied_steps(connection)
    return not names and bool(version or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone())


def apply_steps(connection: sqlite3.Connection, steps: tuple[Step, ...] = STEPS) -> None:
    """Applies the steps that the file lacks. To be called within a transaction (BEGIN IMMEDIATE), so that of two
    programs that open a blank file at once the second finds the work done."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations(MIGRATION_SET)
    for step in steps:
        migrations(name=step.__name__)(step)
    migrations.apply(Database(connection, recursive_triggers=False, execute_plugins=False))
    connection.execute(f"PRAGMA user_version = {len(steps)}")
