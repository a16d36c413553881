-- Version 14: what happened to targets while they were measured. docs/ledger.md explains every
-- column.

-- One event of the suite that happened.
CREATE TABLE event (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,
    took_ns INTEGER NOT NULL,
    name TEXT NOT NULL,
    action TEXT NOT NULL,
    exit_status INTEGER,
    failure TEXT,
    PRIMARY KEY (trial_id, ordinal)
) STRICT, WITHOUT ROWID;
