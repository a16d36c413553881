-- Every view. A change here needs a new version (mod.rs), without which nothing would bring it into a
-- file that is there.

-- One row per trial, with its metrics: the rows of `figure` as columns. What hangs on a trial is asked
-- for trial by trial, because SQLite would compute a joined view of groups for the whole ledger first.
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
    trial.causes AS causes,
    trial.state AS state,
    trial.measured_ns AS measured_ns,
    trial.operations AS operations,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'rate_per_s') AS rate_per_s,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'latency.p50') AS latency_p50_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'latency.p90') AS latency_p90_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'latency.p99') AS latency_p99_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'latency.p999')
        AS latency_p999_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'latency.max') AS latency_max_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'latency.mean')
        AS latency_mean_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'concurrency.mean')
        AS concurrency_mean,
    trial.wrong AS wrong,
    trial.refused AS refused,
    trial.missing AS missing,
    trial.misses AS misses,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'hit_ratio') AS hit_ratio,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'server.cpu_ns_per_op')
        AS server_cpu_ns_per_op,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'server.user_ns_per_op')
        AS server_user_ns_per_op,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'server.system_ns_per_op')
        AS server_system_ns_per_op,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'server.rss_bytes')
        AS server_rss_bytes,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'generator.cpu_ns_per_op')
        AS generator_cpu_ns_per_op,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'generator.user_ns_per_op')
        AS generator_user_ns_per_op,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'generator.system_ns_per_op')
        AS generator_system_ns_per_op,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'generator.rss_bytes')
        AS generator_rss_bytes,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'generator.busy')
        AS generator_busy,
    trial.overloaded AS overloaded,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'offered_per_s')
        AS offered_per_s,
    trial.backlog_most AS backlog_most,
    trial.failed_at AS failed_at,
    trial.unchecked AS unchecked,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'lag.p50') AS lag_p50_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'lag.p99') AS lag_p99_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'updates_per_s')
        AS updates_per_s,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'elements_per_s')
        AS elements_per_s,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'bytes_per_s') AS bytes_per_s,
    trial.received_bytes AS received_bytes,
    trial.sent_bytes AS sent_bytes,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'missed') AS missed,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'merged') AS merged,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'fairness') AS fairness,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'least_updates')
        AS least_updates,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'staleness.p50')
        AS staleness_p50_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'staleness.p99')
        AS staleness_p99_ns,
    (SELECT value FROM figure WHERE trial_id = trial.id AND name = 'staleness.max')
        AS staleness_max_ns
FROM trial
JOIN round ON round.id = trial.round_id
JOIN point ON point.id = round.point_id
JOIN target ON target.id = trial.target_id
JOIN run ON run.id = round.run_id
JOIN suite ON suite.id = run.suite_id;

-- One row per whole-trial histogram: by clients, operation and kind.
CREATE VIEW latency AS
SELECT
    round.run_id AS run_id,
    point.label AS point,
    target.name AS target,
    round.ordinal AS round,
    trial.id AS trial_id,
    trial.validity AS validity,
    histogram.clients AS clients,
    histogram.operation AS operation,
    histogram.kind AS kind,
    histogram.count AS count,
    histogram.min_ns AS min_ns,
    histogram.mean_ns AS mean_ns,
    histogram.p50_ns AS p50_ns,
    histogram.p90_ns AS p90_ns,
    histogram.p99_ns AS p99_ns,
    histogram.p999_ns AS p999_ns,
    histogram.max_ns AS max_ns
FROM histogram
JOIN trial ON trial.id = histogram.trial_id
JOIN round ON round.id = trial.round_id
JOIN point ON point.id = round.point_id
JOIN target ON target.id = trial.target_id
WHERE histogram.second IS NULL;

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

-- One row per measured trial and limit; a trial that reached none has one row with rank NULL.
CREATE VIEW limits AS
SELECT
    round.run_id AS run_id,
    point.label AS point,
    target.name AS target,
    round.ordinal AS round,
    trial.id AS trial_id,
    trial.validity AS validity,
    reached.rank AS rank,
    coalesce(reached.code, 'none') AS code,
    reached.strength AS strength,
    reached.evidence AS evidence,
    trial.shared AS shared
FROM trial
JOIN round ON round.id = trial.round_id
JOIN point ON point.id = round.point_id
JOIN target ON target.id = trial.target_id
LEFT JOIN reached ON reached.trial_id = trial.id
WHERE trial.shared IS NOT NULL;

-- One row per trial, clients and second, under the twenty names that the table of an older rig for
-- testing databases had, so that its queries find them again; the rest distinguishes rows. What the
-- ledger doesn't hold is NULL. Grouping by run_id lets a query of one run read only that run.
CREATE VIEW cool_test AS
WITH report AS (
    SELECT
        round.run_id AS run_id,
        trial.id AS trial_id,
        histogram.clients AS clients,
        histogram.second AS second,
        trial.schedule_ns * 1.0 / trial.measured_ns AS scheduled_part,
        sum(histogram.count) AS count,
        sum(histogram.mean_ns * histogram.count) / sum(histogram.count) / 1e9 AS mean_s
    FROM round
    JOIN trial ON trial.round_id = round.id
    JOIN histogram ON histogram.trial_id = trial.id
    WHERE histogram.kind = 'latency' AND histogram.second IS NOT NULL AND histogram.clients <> ''
    GROUP BY round.run_id, trial.id, histogram.clients, histogram.second
),
-- Targets take turns, so one is measured in a part of a second only, and requests become due from
-- a slice's start until its schedule ends, not while the last are answered. And what a schedule
-- offered is known of all clients together: with several groups it belongs to none.
turn AS (
    SELECT
        report.*,
        (SELECT count(DISTINCT other.clients) FROM histogram AS other
         WHERE other.trial_id = report.trial_id AND other.clients <> '') AS groups,
        (SELECT sum(max(0, min(slice.start_ns + slice.duration_ns * scheduled_part,
                 (second + 1) * 1000000000) - max(slice.start_ns, second * 1000000000))) / 1e9
         FROM slice WHERE slice.trial_id = report.trial_id) AS scheduled_s
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
        THEN turn.scheduled_s * trial.offered * 1e9 / trial.schedule_ns END AS expectedwor,
    CASE WHEN turn.groups = 1
        THEN trial.offered * 1e9 / trial.schedule_ns END AS numpersecwor,
    CASE WHEN turn.groups = 1 THEN trial.received_bytes * 1.0 / nullif(trial.operations, 0)
        * trial.offered * 60e9 / trial.schedule_ns / 1048576 END AS expectedmbpminwor,
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
        / (turn.scheduled_s * trial.offered * 1e9 / trial.schedule_ns) END AS percwor,
    CASE WHEN turn.groups = 1 THEN trial.received_bytes * 60e9
        / trial.measured_ns / 1048576 END AS mbpminwor,
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
