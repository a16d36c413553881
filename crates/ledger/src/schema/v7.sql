-- Version 7: the system calls of an operation, and what this host's floors are.
-- docs/ledger.md explains every column.

-- The system calls of one side at one point, counted in a short trial of their own.
CREATE TABLE call (
    point_id INTEGER NOT NULL REFERENCES point (id) ON DELETE CASCADE,
    target_id INTEGER NOT NULL REFERENCES target (id) ON DELETE CASCADE,
    side TEXT NOT NULL CHECK (side IN ('server', 'generator')),
    name TEXT NOT NULL,
    operations INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    system_ns INTEGER NOT NULL,
    PRIMARY KEY (point_id, target_id, side, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_by_target ON call (target_id);

-- What the simplest things cost on the host of a run.
CREATE TABLE floor (
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value_ns REAL NOT NULL,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
