-- Version 15: the figures that a suite's programs report and its comparisons may be about.
-- docs/ledger.md explains every column.

-- One figure that a suite declares.
CREATE TABLE program_figure (
    run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    better TEXT NOT NULL CHECK (better IN ('higher', 'lower')),
    unit TEXT NOT NULL,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
