-- Version 2: what sensors saw, what a schedule asked for, the slowest requests, figures of calls.
-- docs/ledger.md explains every column and how a chunk is packed.

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

-- A run of version 1 gets an identity that every copy of its ledger gives it alike. A run of
-- version 2 draws one.
ALTER TABLE run ADD COLUMN settings TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(settings));
ALTER TABLE run ADD COLUMN uid TEXT NOT NULL DEFAULT '';
UPDATE run SET uid = printf('%016x%08x%08x', seed, process_started_ticks, pid);
CREATE UNIQUE INDEX run_by_uid ON run (uid);

ALTER TABLE trial ADD COLUMN overloaded INTEGER NOT NULL DEFAULT 0 CHECK (overloaded IN (0, 1));
ALTER TABLE trial ADD COLUMN offered INTEGER;
ALTER TABLE trial ADD COLUMN backlog_most INTEGER;
ALTER TABLE trial ADD COLUMN failed_at TEXT
    CHECK (failed_at IN ('start', 'prepare', 'warm-up', 'measure'));
ALTER TABLE trial ADD COLUMN unchecked INTEGER NOT NULL DEFAULT 0;

-- The slowest requests of a trial, at most 64.
CREATE TABLE slow (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    at_ns INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    clients TEXT NOT NULL,
    operation TEXT NOT NULL
) STRICT;
CREATE INDEX slow_by_trial ON slow (trial_id, latency_ns);

-- What calls measured themselves, every one.
CREATE TABLE value (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (trial_id, ordinal)
) STRICT, WITHOUT ROWID;

-- One row per trial that has send lags. SQL can't merge histograms: a percentile over several
-- clients or operations is no greater than the greatest of theirs, which is what stands here
-- where the histogram of all of them isn't stored.
CREATE VIEW send_lag AS
SELECT
    trial_id,
    coalesce(max(p50_ns) FILTER (WHERE clients = '' AND operation = ''), max(p50_ns)) AS p50_ns,
    coalesce(max(p99_ns) FILTER (WHERE clients = '' AND operation = ''), max(p99_ns)) AS p99_ns,
    max(max_ns) AS max_ns
FROM histogram
WHERE kind = 'lag' AND second IS NULL AND count > 0
GROUP BY trial_id;

DROP VIEW trials;
-- One row per trial, with the figures that reports show. Division by zero is NULL in SQLite,
-- which is what an unmeasured rate should be.
CREATE VIEW trials AS
SELECT
    round.run_id AS run_id,
    suite.title AS suite,
    point.id AS point_id,
    point.label AS point,
    point.keys AS keys,
    target.name AS target,
    round.ordinal AS round,
    trial.id AS trial_id,
    trial.validity AS validity,
    trial.reason AS reason,
    trial.state AS state,
    trial.measured_ns AS measured_ns,
    trial.operations AS operations,
    trial.operations * 1e9 / trial.measured_ns AS rate_per_s,
    latency.p50_ns AS latency_p50_ns,
    latency.p90_ns AS latency_p90_ns,
    latency.p99_ns AS latency_p99_ns,
    latency.p999_ns AS latency_p999_ns,
    latency.max_ns AS latency_max_ns,
    latency.mean_ns AS latency_mean_ns,
    trial.wrong AS wrong,
    trial.missing AS missing,
    trial.misses AS misses,
    trial.hits * 1.0 / (trial.hits + trial.misses) AS hit_ratio,
    trial.server_cpu_ns * 1.0 / trial.operations AS server_cpu_ns_per_op,
    trial.server_user_ns * 1.0 / trial.operations AS server_user_ns_per_op,
    trial.server_system_ns * 1.0 / trial.operations AS server_system_ns_per_op,
    trial.server_rss_bytes AS server_rss_bytes,
    trial.generator_cpu_ns * 1.0 / trial.operations AS generator_cpu_ns_per_op,
    trial.generator_user_ns * 1.0 / trial.operations AS generator_user_ns_per_op,
    trial.generator_system_ns * 1.0 / trial.operations AS generator_system_ns_per_op,
    trial.generator_rss_bytes AS generator_rss_bytes,
    trial.generator_busy AS generator_busy,
    trial.overloaded AS overloaded,
    trial.offered * 1e9 / trial.measured_ns AS offered_per_s,
    trial.backlog_most AS backlog_most,
    trial.failed_at AS failed_at,
    trial.unchecked AS unchecked,
    lag.p50_ns AS lag_p50_ns,
    lag.p99_ns AS lag_p99_ns
FROM trial
JOIN round ON round.id = trial.round_id
JOIN point ON point.id = round.point_id
JOIN target ON target.id = trial.target_id
JOIN run ON run.id = round.run_id
JOIN suite ON suite.id = run.suite_id
LEFT JOIN histogram AS latency
    ON latency.trial_id = trial.id
    AND latency.clients = ''
    AND latency.operation = ''
    AND latency.kind = 'latency'
    AND latency.second IS NULL
LEFT JOIN send_lag AS lag ON lag.trial_id = trial.id;
