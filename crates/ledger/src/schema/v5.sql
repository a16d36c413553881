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

-- One row per trial that has streams. SQL can't merge histograms: with several groups of clients
-- a percentile is the greatest of theirs, which is never less.
CREATE VIEW brought AS
SELECT
    trial_id,
    sum(streams) AS streams,
    sum(updates) AS updates,
    sum(missed) AS missed,
    sum(merged) AS merged,
    min(least_updates) AS least_updates,
    max(staleness_p50_ns) AS staleness_p50_ns,
    max(staleness_p99_ns) AS staleness_p99_ns,
    max(staleness_max_ns) AS staleness_max_ns
FROM stream
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
    lag.p99_ns AS lag_p99_ns,
    brought.updates * 1e9 / trial.measured_ns AS updates_per_s,
    trial.elements * 1e9 / trial.measured_ns AS elements_per_s,
    trial.payload_bytes * 1e9 / trial.measured_ns AS bytes_per_s,
    trial.received_bytes AS received_bytes,
    trial.sent_bytes AS sent_bytes,
    brought.missed AS missed,
    brought.merged AS merged,
    trial.fairness AS fairness,
    brought.least_updates AS least_updates,
    brought.staleness_p50_ns AS staleness_p50_ns,
    brought.staleness_p99_ns AS staleness_p99_ns,
    brought.staleness_max_ns AS staleness_max_ns
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
LEFT JOIN send_lag AS lag ON lag.trial_id = trial.id
LEFT JOIN brought ON brought.trial_id = trial.id;
