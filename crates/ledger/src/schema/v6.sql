-- Version 6: what limited a trial, and the figures that show it. docs/ledger.md explains every
-- column.

-- What both sides and the host did in a trial's measured slices; a figure that isn't there was
-- unseen. A table of names, because what hosts show differs and grows.
CREATE TABLE usage (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (trial_id, name)
) STRICT, WITHOUT ROWID;

-- The limits that a trial reached, the one that gives way first at rank 1.
CREATE TABLE reached (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    code TEXT NOT NULL,
    strength REAL NOT NULL,
    evidence TEXT NOT NULL,
    PRIMARY KEY (trial_id, rank)
) STRICT, WITHOUT ROWID;

ALTER TABLE trial ADD COLUMN shared TEXT;
