"""The tables of datasets, trainings, adapters and evaluations, as steps of the schema made them for good."""

LORA_TABLES = (
    """
    CREATE TABLE dataset (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        path TEXT NOT NULL,
        data_hash TEXT NOT NULL,
        train_examples INTEGER NOT NULL,
        validation_examples INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        sources TEXT NOT NULL,
        model TEXT,
        max_length INTEGER,
        train_tokens INTEGER,
        validation_tokens INTEGER,
        report TEXT NOT NULL,
        raw TEXT NOT NULL
    )""",
    """
    CREATE TABLE training (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        base_model TEXT NOT NULL,
        dataset_id INTEGER NOT NULL REFERENCES dataset(id),
        settings TEXT NOT NULL,
        seed INTEGER NOT NULL,
        path TEXT NOT NULL,
        marker TEXT NOT NULL,
        created_at TEXT NOT NULL,
        adapter_name TEXT NOT NULL,
        base_hash TEXT,
        data_hash TEXT,
        environment TEXT NOT NULL,
        python TEXT,
        pid INTEGER,
        start_ticks INTEGER,
        boot_id TEXT,
        descendants TEXT NOT NULL,
        keeper_pid INTEGER,
        keeper_start_ticks INTEGER,
        started_at TEXT,
        finished_at TEXT,
        step INTEGER,
        steps INTEGER,
        loss REAL,
        eval_loss REAL,
        seconds REAL,
        checkpoint TEXT,
        message TEXT,
        raw TEXT NOT NULL
    )""",
    """
    CREATE TABLE adapter (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        version INTEGER NOT NULL CHECK (version > 0),
        base_model TEXT NOT NULL,
        path TEXT NOT NULL,
        signature TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        base_hash TEXT,
        parameters TEXT NOT NULL,
        data_hash TEXT,
        losses TEXT NOT NULL,
        gpu TEXT,
        seconds REAL,
        training_id INTEGER REFERENCES training(id),
        imported_from TEXT,
        served TEXT NOT NULL,
        notes TEXT,
        raw TEXT NOT NULL,
        UNIQUE (name, version)
    )""",
    # What was trained, measured and signed under a version is what is served under it ever after.
    """
    CREATE TRIGGER adapter_versions_never_change
    BEFORE UPDATE OF id, name, version, base_model, path, signature, size_bytes, created_at, base_hash, parameters,
        data_hash, losses, gpu, seconds, training_id, imported_from, raw ON adapter
    BEGIN SELECT RAISE(ABORT, 'a version of an adapter never changes: register another'); END""",
    "ALTER TABLE event ADD COLUMN training_id INTEGER REFERENCES training(id) ON DELETE CASCADE",
    "CREATE INDEX event_by_training ON event (training_id)",
    "CREATE INDEX training_by_state ON training (state)",
    "CREATE INDEX training_by_dataset ON training (dataset_id)",
    "CREATE INDEX adapter_by_training ON adapter (training_id)",
)

EVALUATION_TABLES = (
    """
    CREATE TABLE evaluation (
        id INTEGER PRIMARY KEY,
        adapter_id INTEGER NOT NULL REFERENCES adapter(id) ON DELETE CASCADE,
        created_at TEXT NOT NULL,
        data_hash TEXT NOT NULL,
        dataset_id INTEGER REFERENCES dataset(id),
        records INTEGER NOT NULL,
        answer_tokens INTEGER NOT NULL,
        base_loss REAL NOT NULL,
        adapter_loss REAL NOT NULL,
        difference REAL NOT NULL,
        low REAL,
        high REAL,
        improved INTEGER NOT NULL,
        seconds REAL,
        settings TEXT NOT NULL,
        answers TEXT NOT NULL,
        environment TEXT NOT NULL,
        raw TEXT NOT NULL
    )""",
    "CREATE INDEX evaluation_by_adapter ON evaluation (adapter_id)",
)

# The number of an evaluation is that of its work and of its result. Those that were made before they were work that
# a keeper carries out are done.
EVALUATION_JOB_TABLES = (
    """
    CREATE TABLE evaluation_job (
        id INTEGER PRIMARY KEY,
        adapter_id INTEGER NOT NULL REFERENCES adapter(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        base_model TEXT NOT NULL,
        data TEXT NOT NULL,
        data_path TEXT NOT NULL,
        data_hash TEXT NOT NULL,
        path TEXT NOT NULL,
        marker TEXT NOT NULL,
        created_at TEXT NOT NULL,
        dataset_id INTEGER REFERENCES dataset(id),
        base_hash TEXT,
        settings TEXT NOT NULL,
        python TEXT,
        pid INTEGER,
        start_ticks INTEGER,
        boot_id TEXT,
        keeper_pid INTEGER,
        keeper_start_ticks INTEGER,
        started_at TEXT,
        finished_at TEXT,
        done INTEGER,
        records INTEGER,
        seconds REAL,
        message TEXT,
        raw TEXT NOT NULL
    )""",
    """
    INSERT INTO evaluation_job (id, adapter_id, name, state, base_model, data, data_path, data_hash, path, marker,
        created_at, dataset_id, base_hash, settings, finished_at, done, records, seconds, raw)
    SELECT evaluation.id, adapter.id, adapter.name || '@' || adapter.version, 'done', adapter.base_model,
        coalesce(CASE WHEN json_valid(evaluation.settings) THEN json_extract(evaluation.settings, '$.data') END, ''),
        '', evaluation.data_hash, '', '', evaluation.created_at, dataset_id, base_hash,
        CASE WHEN json_valid(evaluation.settings) THEN evaluation.settings ELSE '{}' END,
        evaluation.created_at, records, records, evaluation.seconds, '{}'
    FROM evaluation JOIN adapter ON adapter.id = evaluation.adapter_id""",
    "ALTER TABLE event ADD COLUMN evaluation_id INTEGER REFERENCES evaluation_job(id) ON DELETE CASCADE",
    "CREATE INDEX event_by_evaluation ON event (evaluation_id)",
    "CREATE INDEX evaluation_job_by_state ON evaluation_job (state)",
    "CREATE INDEX evaluation_job_by_adapter ON evaluation_job (adapter_id)",
)

# A version whose files were deleted keeps its row: its number is never given to others, and what was measured under it
# stays told. Only its end may be written, once; the trigger above holds for all else.
DELETED_ADAPTERS = (
    "ALTER TABLE adapter ADD COLUMN deleted_at TEXT",
    """
    CREATE TRIGGER adapter_versions_stay_deleted
    BEFORE UPDATE OF deleted_at ON adapter WHEN OLD.deleted_at IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'a version of an adapter that was deleted stays so: register another'); END""",
    """
    CREATE TRIGGER adapter_versions_are_given_once
    BEFORE DELETE ON adapter
    BEGIN SELECT RAISE(ABORT, 'the number of a version is given once: mark it as deleted'); END""",
)
