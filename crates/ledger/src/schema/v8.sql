-- Version 8: searches for the highest load, and who sends how much at once.
-- docs/ledger.md explains every column.

-- A run that searches the highest load that meets every requirement; its points are loads.
CREATE TABLE search (
    run_id INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    precision REAL NOT NULL,
    error REAL NOT NULL,
    rounds_most INTEGER NOT NULL
) STRICT;

-- One load that was tried.
CREATE TABLE probe (
    point_id INTEGER PRIMARY KEY REFERENCES point (id) ON DELETE CASCADE,
    load REAL NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('held', 'broken', 'cant_tell')),
    reason TEXT
) STRICT;

-- One group of clients at one point.
CREATE TABLE clients (
    point_id INTEGER NOT NULL REFERENCES point (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    connections INTEGER NOT NULL,
    pipeline INTEGER NOT NULL,
    threads INTEGER NOT NULL,
    arrivals TEXT NOT NULL
        CHECK (arrivals IN ('closed', 'think', 'steps', 'schedule', 'subscribe')),
    think_ns INTEGER,
    PRIMARY KEY (point_id, name)
) STRICT, WITHOUT ROWID;
