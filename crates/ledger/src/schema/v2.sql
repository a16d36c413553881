-- Version 2: what sensors saw. docs/ledger.md explains every column and how a chunk is packed.

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

-- One row per ten seconds of a series.
CREATE VIEW sensors AS
SELECT
    series.run_id AS run_id,
    target.name AS target,
    series.sensor AS sensor,
    series.name AS name,
    series.unit AS unit,
    series.id AS series_id,
    chunk.start_ns AS start_ns,
    chunk.count AS count,
    chunk.min AS min,
    chunk.mean AS mean,
    chunk.max AS max
FROM series
JOIN chunk ON chunk.series_id = series.id
LEFT JOIN target ON target.id = series.target_id;
