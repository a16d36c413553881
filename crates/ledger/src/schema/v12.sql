-- A figure that calls measured themselves and called like a metric is that metric, where the lab has
-- none of its own: the mean over calls.
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
    COALESCE(
        brought.updates * 1e9 / trial.measured_ns,
        (SELECT avg(value) FROM value WHERE trial_id = trial.id AND name = 'updates_per_s')
    ) AS updates_per_s,
    COALESCE(
        trial.elements * 1e9 / trial.measured_ns,
        (SELECT avg(value) FROM value WHERE trial_id = trial.id AND name = 'elements_per_s')
    ) AS elements_per_s,
    COALESCE(
        trial.payload_bytes * 1e9 / trial.measured_ns,
        (SELECT avg(value) FROM value WHERE trial_id = trial.id AND name = 'bytes_per_s')
    ) AS bytes_per_s,
    trial.received_bytes AS received_bytes,
    trial.sent_bytes AS sent_bytes,
    COALESCE(
        brought.missed,
        (SELECT avg(value) FROM value WHERE trial_id = trial.id AND name = 'missed')
    ) AS missed,
    COALESCE(
        brought.merged,
        (SELECT avg(value) FROM value WHERE trial_id = trial.id AND name = 'merged')
    ) AS merged,
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
