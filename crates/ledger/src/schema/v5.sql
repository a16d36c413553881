-- Version 5: what streams have brought, and how much data came and went.
-- docs/ledger.md explains every column.

CREATE TABLE stream (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    clients TEXT NOT NULL,
    streams INTEGER NOT NULL,
    updates INTEGER NOT NULL,
    missed INTEGER NOT NULL,
    merged INTEGER NOT NULL,
    least_updates INTEGER NOT NULL,
    fairness REAL,
    staleness_p50_ns INTEGER,
    staleness_p99_ns INTEGER,
    staleness_max_ns INTEGER,
    staleness BLOB NOT NULL,
    PRIMARY KEY (trial_id, clients)
) STRICT;

ALTER TABLE trial ADD COLUMN elements INTEGER;
ALTER TABLE trial ADD COLUMN payload_bytes INTEGER;
ALTER TABLE trial ADD COLUMN received_bytes INTEGER;
ALTER TABLE trial ADD COLUMN sent_bytes INTEGER;
ALTER TABLE trial ADD COLUMN fairness REAL;
