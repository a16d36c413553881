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

-- One row per trial, clients and second, under the twenty names that the table of an older rig for
-- testing databases had, so that its queries find them again; the rest tells rows apart. What the
-- ledger doesn't hold is NULL. Grouping by run_id lets a query of one run read only that run.
CREATE VIEW cool_test AS
WITH report AS (
    SELECT
        round.run_id AS run_id,
        trial.id AS trial_id,
        histogram.clients AS clients,
        histogram.second AS second,
        sum(histogram.count) AS count,
        sum(histogram.mean_ns * histogram.count) / sum(histogram.count) / 1e9 AS mean_s
    FROM round
    JOIN trial ON trial.round_id = round.id
    JOIN histogram ON histogram.trial_id = trial.id
    WHERE histogram.kind = 'latency' AND histogram.second IS NOT NULL AND histogram.clients <> ''
    GROUP BY round.run_id, trial.id, histogram.clients, histogram.second
),
-- Targets take turns, so one is measured in a part of a second only. And what a schedule offered
-- is known of all clients together: with several groups it is nobody's.
turn AS (
    SELECT
        report.*,
        (SELECT count(DISTINCT other.clients) FROM histogram AS other
         WHERE other.trial_id = report.trial_id AND other.clients <> '') AS groups,
        (SELECT sum(max(0, min(slice.start_ns + slice.duration_ns, (second + 1) * 1000000000)
             - max(slice.start_ns, second * 1000000000))) / 1e9
         FROM slice WHERE slice.trial_id = report.trial_id) AS measured_s
    FROM report
)
SELECT
    strftime('%Y-%m-%dT%H:%M:%SZ', run.started_at, turn.second || ' seconds') AS time,
    (SELECT group_concat(value, ' ') FROM json_each(point.keys)
     WHERE key <> 'workload.operation') AS testvalue,
    round.ordinal AS runnum,
    point.ordinal = 0 AS isdefault,
    trial.measured_ns / 1e9 AS duration,
    CASE WHEN turn.groups = 1
        THEN turn.measured_s * trial.offered * 1e9 / trial.measured_ns END AS expectedwor,
    CASE WHEN turn.groups = 1
        THEN trial.offered * 1e9 / trial.measured_ns END AS numpersecwor,
    NULL AS expectedmbpminwor,
    trial.generator_cpu_ns * 100.0 / trial.measured_ns AS clientscpuperc,
    (SELECT CASE
         WHEN total(outcome = 'broken') > 0 THEN 'no'
         WHEN count(*) > 0 AND total(outcome = 'cant_tell') = 0 THEN 'yes'
     END FROM requirement WHERE requirement.point_id = point.id) AS passed,
    (SELECT group_concat(key, ' ') FROM json_each(point.keys)
     WHERE key <> 'workload.operation') AS testname,
    (SELECT count(DISTINCT other.clients) FROM histogram AS other
     WHERE other.trial_id = trial.id AND other.clients <> ''
       AND other.clients <= turn.clients) AS client,
    (SELECT count(DISTINCT ifnull(other.second, -1)) FROM histogram AS other
     WHERE other.trial_id = trial.id AND other.clients = turn.clients AND other.kind = 'latency'
       AND ifnull(other.second, -1) BETWEEN 0 AND turn.second) AS report,
    turn.mean_s AS elapsed,
    turn.count AS actualwor,
    CASE WHEN turn.groups = 1 THEN turn.count * 100.0
        / (turn.measured_s * trial.offered * 1e9 / trial.measured_ns) END AS percwor,
    NULL AS mbpminwor,
    (SELECT sum(chunk.mean * chunk.count) / sum(chunk.count)
     FROM series JOIN chunk ON chunk.series_id = series.id
     WHERE series.run_id = run.id AND ifnull(series.target_id, -1) = -1
       AND series.sensor = 'load' AND series.name = 'one_minute'
       AND chunk.start_ns BETWEEN (turn.second - 300) * 1000000000
           AND turn.second * 1000000000) AS load5,
    100.0 * coalesce(
        trial.generator_rss_bytes,
        (SELECT chunk.max FROM series JOIN chunk ON chunk.series_id = series.id
         WHERE series.run_id = run.id AND ifnull(series.target_id, -1) = -1
           AND series.sensor = 'processes' AND series.name = 'generator.resident'
           AND chunk.start_ns = turn.second / 10 * 10000000000)
    ) / nullif(CAST(json_extract(fingerprint.json, '$.memory') AS INTEGER) * 1024, 0)
        AS clientmemperc,
    json_extract(fingerprint.json, '$.hostname') AS hostname,
    turn.run_id AS run_id,
    point.id AS point_id,
    point.keys AS keys,
    target.name AS target,
    trial.id AS trial_id,
    trial.validity AS validity,
    turn.clients AS clients
FROM turn
JOIN trial ON trial.id = turn.trial_id
JOIN round ON round.id = trial.round_id
JOIN point ON point.id = round.point_id
JOIN target ON target.id = trial.target_id
JOIN run ON run.id = turn.run_id
JOIN fingerprint ON fingerprint.id = run.fingerprint_id;

-- What that rig's pages showed: its averages, one row per tested value and clients, of valid
-- trials.
CREATE VIEW cool_test_averages AS
SELECT
    run_id,
    point_id,
    target,
    clients,
    min(time) AS time,
    testname,
    testvalue,
    isdefault,
    count(*) AS reports,
    avg(elapsed) AS avg_elapsed,
    avg(elapsed) / coalesce(
        json_extract(keys, '$."clients.connections"'),
        json_extract(keys, '$."clients.' || clients || '.connections"')
    ) AS avg_servertime,
    min(elapsed) AS min_elapsed,
    max(elapsed) AS max_elapsed,
    sum(actualwor) AS actualwor,
    avg(percwor) AS avg_percwor,
    avg(load5) AS avg_load5,
    avg(clientscpuperc) AS clientscpuperc,
    avg(clientmemperc) AS clientmemperc,
    passed
FROM cool_test
WHERE validity = 'valid'
GROUP BY run_id, point_id, target, clients;
