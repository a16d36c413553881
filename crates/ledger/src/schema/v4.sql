-- Version 4: what the services themselves counted in each trial. docs/ledger.md explains it.

CREATE TABLE counter (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    grows INTEGER NOT NULL CHECK (grows IN (0, 1)),
    value REAL NOT NULL,
    PRIMARY KEY (trial_id, name)
) STRICT, WITHOUT ROWID;
