-- Version 1 of the ledger's schema. It is public: docs/ledger.md explains every column.
-- A change of it is a new file with the next number, never an edit of this one.

CREATE TABLE suite (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL,
    title TEXT NOT NULL,
    claims TEXT NOT NULL CHECK (json_valid(claims)),
    compromises TEXT NOT NULL CHECK (json_valid(compromises)),
    text TEXT NOT NULL
) STRICT;

CREATE TABLE fingerprint (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;

-- AUTOINCREMENT: run ids only count up, so that a number once written down never means
-- another run.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    suite_id INTEGER NOT NULL REFERENCES suite (id),
    fingerprint_id INTEGER NOT NULL REFERENCES fingerprint (id),
    command TEXT NOT NULL,
    version TEXT NOT NULL,
    seed INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted', 'failed')),
    note TEXT,
    primary_metric TEXT NOT NULL,
    same_within REAL NOT NULL,
    confidence REAL NOT NULL,
    pid INTEGER NOT NULL,
    pid_namespace TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    process_started_ticks INTEGER NOT NULL
) STRICT;

CREATE TABLE target (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    skipped TEXT,
    UNIQUE (run_id, ordinal),
    UNIQUE (run_id, name)
) STRICT;

CREATE TABLE point (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    label TEXT NOT NULL,
    keys TEXT NOT NULL CHECK (json_valid(keys)),
    UNIQUE (run_id, ordinal)
) STRICT;

CREATE TABLE round (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    point_id INTEGER NOT NULL REFERENCES point (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    UNIQUE (point_id, ordinal)
) STRICT;
CREATE INDEX round_by_run ON round (run_id);

CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    round_id INTEGER NOT NULL REFERENCES round (id) ON DELETE CASCADE,
    target_id INTEGER NOT NULL REFERENCES target (id) ON DELETE CASCADE,
    validity TEXT NOT NULL CHECK (validity IN ('valid', 'disturbed', 'invalid')),
    reason TEXT,
    state TEXT NOT NULL CHECK (state IN ('cold', 'warm')),
    started_ns INTEGER NOT NULL,
    measured_ns INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    wrong INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    misses INTEGER NOT NULL,
    hits INTEGER,
    generator_busy REAL,
    server_cpu_ns INTEGER,
    server_user_ns INTEGER,
    server_system_ns INTEGER,
    server_rss_bytes INTEGER,
    generator_cpu_ns INTEGER,
    generator_user_ns INTEGER,
    generator_system_ns INTEGER,
    generator_rss_bytes INTEGER,
    prepare_ns INTEGER,
    warmup_ns INTEGER,
    UNIQUE (round_id, target_id)
) STRICT;
CREATE INDEX trial_by_target ON trial (target_id);

CREATE TABLE slice (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    server_cpu_ns INTEGER,
    generator_cpu_ns INTEGER,
    validity TEXT NOT NULL CHECK (validity IN ('valid', 'disturbed', 'invalid')),
    reason TEXT,
    PRIMARY KEY (trial_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE histogram (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    clients TEXT NOT NULL,
    operation TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('latency', 'service', 'lag')),
    second INTEGER,
    count INTEGER NOT NULL,
    min_ns INTEGER,
    mean_ns REAL,
    p50_ns INTEGER,
    p90_ns INTEGER,
    p99_ns INTEGER,
    p999_ns INTEGER,
    max_ns INTEGER,
    data BLOB NOT NULL
) STRICT;
-- A NULL second (the whole trial) is one value here, while UNIQUE would let it repeat.
CREATE UNIQUE INDEX histogram_once
    ON histogram (trial_id, clients, operation, kind, ifnull(second, -1));

CREATE TABLE finding (
    id INTEGER PRIMARY KEY,
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    at_ns INTEGER NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    expected BLOB NOT NULL,
    received BLOB NOT NULL,
    note TEXT NOT NULL
) STRICT;
CREATE INDEX finding_by_trial ON finding (trial_id);

CREATE TABLE requirement (
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    point_id INTEGER NOT NULL REFERENCES point (id) ON DELETE CASCADE,
    expression TEXT NOT NULL,
    value REAL,
    outcome TEXT NOT NULL CHECK (outcome IN ('held', 'broken', 'cant_tell')),
    UNIQUE (point_id, expression)
) STRICT;
CREATE INDEX requirement_by_run ON requirement (run_id);
