-- Version 3: what a comparison asked, when it was looked at, and what its targets were built from.
-- docs/ledger.md explains every column.

-- A run that is one comparison of its two targets.
CREATE TABLE comparison (
    run_id INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    error REAL NOT NULL CHECK (error > 0 AND error < 1),
    rounds_most INTEGER NOT NULL CHECK (rounds_most > 0),
    factor TEXT,
    least_shown REAL,
    least_shown_from TEXT
) STRICT;

-- One look at the verdict of a point while rounds still came.
CREATE TABLE look (
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    point_id INTEGER NOT NULL REFERENCES point (id) ON DELETE CASCADE,
    rounds INTEGER NOT NULL,
    PRIMARY KEY (point_id, rounds)
) STRICT, WITHOUT ROWID;
CREATE INDEX look_by_run ON look (run_id);

-- What a target was built from: commit, compiler, size, by name.
CREATE TABLE fact (
    target_id INTEGER NOT NULL REFERENCES target (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (target_id, name)
) STRICT, WITHOUT ROWID;
