-- Version 2: what sensors saw, what a schedule asked for, the slowest requests, figures of calls.
-- docs/ledger.md explains every column and how a chunk is packed.

CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    target_id INTEGER REFERENCES target (id) ON DELETE CASCADE,
    sensor TEXT NOT NULL,
    name TEXT NOT NULL,
    unit TEXT NOT NULL
) STRICT;
-- A NULL target (the host) is one value here, while UNIQUE would let it repeat.
CREATE UNIQUE INDEX series_once ON series (run_id, ifnull(target_id, -1), sensor, name);
CREATE INDEX series_by_target ON series (target_id);

CREATE TABLE chunk (
    series_id INTEGER NOT NULL REFERENCES series (id) ON DELETE CASCADE,
    start_ns INTEGER NOT NULL,
    count INTEGER NOT NULL CHECK (count > 0),
    min REAL NOT NULL,
    mean REAL NOT NULL,
    max REAL NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (series_id, start_ns)
) STRICT, WITHOUT ROWID;

-- A run of version 1 gets an identity that every copy of its ledger gives it alike. A run of
-- version 2 draws one.
ALTER TABLE run ADD COLUMN settings TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(settings));
ALTER TABLE run ADD COLUMN uid TEXT NOT NULL DEFAULT '';
UPDATE run SET uid = printf('%016x%08x%08x', seed, process_started_ticks, pid);
CREATE UNIQUE INDEX run_by_uid ON run (uid);

ALTER TABLE trial ADD COLUMN overloaded INTEGER NOT NULL DEFAULT 0 CHECK (overloaded IN (0, 1));
ALTER TABLE trial ADD COLUMN offered INTEGER;
ALTER TABLE trial ADD COLUMN backlog_most INTEGER;
ALTER TABLE trial ADD COLUMN failed_at TEXT
    CHECK (failed_at IN ('start', 'prepare', 'warm-up', 'measure'));
ALTER TABLE trial ADD COLUMN unchecked INTEGER NOT NULL DEFAULT 0;

-- The slowest requests of a trial, at most 64.
CREATE TABLE slow (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    at_ns INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    clients TEXT NOT NULL,
    operation TEXT NOT NULL
) STRICT;
CREATE INDEX slow_by_trial ON slow (trial_id, latency_ns);

-- What calls measured themselves, every one.
CREATE TABLE value (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (trial_id, ordinal)
) STRICT, WITHOUT ROWID;
