-- Version 9: ladders, and where the CPU time of their rungs goes. docs/ledger.md explains every
-- column.

-- A target that is a rung of a ladder; rungs stand in the order of their targets.
CREATE TABLE rung (
    target_id INTEGER PRIMARY KEY REFERENCES target (id) ON DELETE CASCADE,
    note TEXT NOT NULL,
    decision TEXT CHECK (decision IN ('kept', 'backed out')),
    reason TEXT
) STRICT;

-- The share of a target's CPU time that one function took, in one of several profiles.
CREATE TABLE profile (
    point_id INTEGER NOT NULL REFERENCES point (id) ON DELETE CASCADE,
    target_id INTEGER NOT NULL REFERENCES target (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    function TEXT NOT NULL,
    share REAL NOT NULL,
    PRIMARY KEY (point_id, target_id, ordinal, function)
) STRICT, WITHOUT ROWID;
CREATE INDEX profile_by_target ON profile (target_id);
