//! Writing a ledger: one method per table, and batches.

use rusqlite::{OptionalExtension, Params, params};
use serde_json::Value;

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::process::ProcessMark;
use crate::rows::{
    CounterRow, FindingRow, FingerprintId, FingerprintRow, HistogramRow, PointId, PointRow,
    ReachedRow, RequirementRow, RoundId, RoundRow, RunId, RunRow, SLOW_LIMIT, SliceRow, SlowRow,
    SuiteId, SuiteRow, TargetId, TargetRow, TrialId, TrialRow, UsageRow, ValueRow,
};
use crate::word_columns::RunState;

impl Ledger {
    /// Begins a batch: later writes are committed together, and not seen by
    /// readers before. While measuring, the lab commits at most once a second.
    ///
    /// Fails when a batch is open already, or when another process holds the write lock for
    /// longer than the busy timeout.
    pub fn begin_batch(&mut self) -> Result<(), LedgerError> {
        if self.in_batch() {
            return Err(LedgerError::BatchOpen);
        }
        // IMMEDIATE takes the write lock now, where waiting for it is possible; a lock taken
        // half-way through a batch could fail without a wait.
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(())
    }

    /// Commits the open batch; without one it does nothing. What isn't committed when the
    /// process dies or the ledger is dropped was never written.
    pub fn commit_batch(&mut self) -> Result<(), LedgerError> {
        if self.in_batch() {
            self.connection.execute_batch("COMMIT")?;
        }
        Ok(())
    }

    /// Whether a batch is open.
    pub fn in_batch(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// The id of a suite: of the row with this hash if there is one, else of a new row.
    pub fn add_suite(&mut self, row: &SuiteRow) -> Result<SuiteId, LedgerError> {
        let known = "SELECT id FROM suite WHERE hash = ?1";
        if let Some(id) = self.connection.query_row(known, [&row.hash], |r| r.get(0)).optional()? {
            return Ok(id);
        }
        let id = self.insert(
            "INSERT INTO suite (hash, path, title, claims, compromises, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                row.hash,
                row.path,
                row.title,
                Value::from(row.claims.clone()).to_string(),
                Value::from(row.compromises.clone()).to_string(),
                row.text,
            ],
        )?;
        Ok(id.into())
    }

    /// The id of a fingerprint: of the row with this hash if there is one, else of a new row.
    pub fn add_fingerprint(&mut self, row: &FingerprintRow) -> Result<FingerprintId, LedgerError> {
        let known = "SELECT id FROM fingerprint WHERE hash = ?1";
        if let Some(id) = self.connection.query_row(known, [&row.hash], |r| r.get(0)).optional()? {
            return Ok(id);
        }
        let json = Value::Object(row.json.clone()).to_string();
        let sql = "INSERT INTO fingerprint (hash, json) VALUES (?1, ?2)";
        Ok(self.insert(sql, params![row.hash, json])?.into())
    }

    /// Writes a new run, marked with the calling process and with an identity drawn for it, and
    /// returns its id.
    ///
    /// Fails besides when `/proc` can't be read.
    pub fn add_run(&mut self, row: &RunRow) -> Result<RunId, LedgerError> {
        let process = ProcessMark::current().map_err(LedgerError::Process)?;
        let id = self.insert(
            "INSERT INTO run (
                 suite_id, fingerprint_id, command, version, seed, started_at, ended_at, state,
                 note, primary_metric, same_within, confidence,
                 pid, pid_namespace, boot_id, process_started_ticks, settings, uid
             ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 lower(hex(randomblob(16))))",
            params![
                row.suite_id,
                row.fingerprint_id,
                row.command,
                row.version,
                row.seed.cast_signed(),
                row.started_at,
                row.ended_at,
                row.state,
                row.note,
                row.primary_metric,
                row.same_within,
                row.confidence,
                process.pid,
                process.pid_namespace,
                process.boot_id,
                process.started_ticks,
                settings(row),
            ],
        )?;
        Ok(id.into())
    }

    /// Ends a run: its last state, when (RFC 3339), and a note that replaces the one there if
    /// given. Commits the open batch, so that a run marked as finished is on disk whole.
    ///
    /// Fails when there is no such run.
    pub fn finish_run(
        &mut self,
        run: RunId,
        state: RunState,
        ended_at: &str,
        note: Option<&str>,
    ) -> Result<(), LedgerError> {
        let changed = self.execute(
            "UPDATE run SET state = ?2, ended_at = ?3, note = ifnull(?4, note) WHERE id = ?1",
            params![run, state, ended_at, note],
        )?;
        if changed == 0 {
            return Err(LedgerError::NoSuchRun(run));
        }
        self.commit_batch()
    }

    /// Writes a target of a run.
    pub fn add_target(&mut self, row: &TargetRow) -> Result<TargetId, LedgerError> {
        let id = self.insert(
            "INSERT INTO target (run_id, ordinal, name, description, skipped)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![row.run_id, row.ordinal, row.name, row.description, row.skipped],
        )?;
        Ok(id.into())
    }

    /// Notes why a target is skipped, when that turns out only after it was written.
    pub fn skip_target(&mut self, target: TargetId, reason: &str) -> Result<(), LedgerError> {
        self.execute("UPDATE target SET skipped = ?2 WHERE id = ?1", params![target, reason])?;
        Ok(())
    }

    /// Writes a point of a run.
    pub fn add_point(&mut self, row: &PointRow) -> Result<PointId, LedgerError> {
        let keys = Value::Object(row.keys.clone()).to_string();
        let id = self.insert(
            "INSERT INTO point (run_id, ordinal, label, keys) VALUES (?1, ?2, ?3, ?4)",
            params![row.run_id, row.ordinal, row.label, keys],
        )?;
        Ok(id.into())
    }

    /// Writes a round of a point.
    pub fn add_round(&mut self, row: &RoundRow) -> Result<RoundId, LedgerError> {
        let seed = row.seed.cast_signed();
        let id = self.insert(
            "INSERT INTO round (run_id, point_id, ordinal, seed, started_ns)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![row.run_id, row.point_id, row.ordinal, seed, row.started_ns],
        )?;
        Ok(id.into())
    }

    /// Writes a trial: [`TrialRow::unfinished`] when it begins, so that its slices, seconds and
    /// findings have something to belong to.
    pub fn add_trial(&mut self, row: &TrialRow) -> Result<TrialId, LedgerError> {
        let id = self.insert(
            "INSERT INTO trial (round_id, target_id, state, started_ns, validity, measured_ns,
                 operations, wrong, missing, misses)
             VALUES (?1, ?2, ?3, ?4, 'invalid', 0, 0, 0, 0, 0)",
            params![row.round_id, row.target_id, row.state, row.started_ns],
        )?;
        self.set_trial(id.into(), row)?;
        Ok(id.into())
    }

    /// Replaces a trial's placeholder by what was measured. Its round and target stay.
    pub fn set_trial(&mut self, trial: TrialId, row: &TrialRow) -> Result<(), LedgerError> {
        self.execute(
            "UPDATE trial SET
                 validity = ?2, reason = ?3, state = ?4, started_ns = ?5, measured_ns = ?6,
                 operations = ?7, wrong = ?8, missing = ?9, misses = ?10, hits = ?11,
                 generator_busy = ?12, server_cpu_ns = ?13, server_user_ns = ?14,
                 server_system_ns = ?15, server_rss_bytes = ?16, generator_cpu_ns = ?17,
                 generator_user_ns = ?18, generator_system_ns = ?19, generator_rss_bytes = ?20,
                 prepare_ns = ?21, warmup_ns = ?22, overloaded = ?23, offered = ?24,
                 backlog_most = ?25, failed_at = ?26, unchecked = ?27, elements = ?28,
                 payload_bytes = ?29, received_bytes = ?30, sent_bytes = ?31, fairness = ?32,
                 shared = ?33, stationary = ?34, steady_after_ns = ?35,
                 staleness_p50_ns = ?36, staleness_p99_ns = ?37, staleness_max_ns = ?38
             WHERE id = ?1",
            params![
                trial,
                row.validity,
                row.reason,
                row.state,
                row.started_ns,
                row.measured_ns,
                row.operations,
                row.wrong,
                row.missing,
                row.misses,
                row.hits,
                row.generator_busy,
                row.server_cpu_ns,
                row.server_user_ns,
                row.server_system_ns,
                row.server_rss_bytes,
                row.generator_cpu_ns,
                row.generator_user_ns,
                row.generator_system_ns,
                row.generator_rss_bytes,
                row.prepare_ns,
                row.warmup_ns,
                row.overloaded,
                row.offered,
                row.backlog_most,
                row.failed_at,
                row.unchecked,
                row.elements,
                row.payload_bytes,
                row.received_bytes,
                row.sent_bytes,
                row.fairness,
                row.shared,
                row.stationary,
                row.steady_after_ns,
                row.staleness_p50_ns,
                row.staleness_p99_ns,
                row.staleness_max_ns,
            ],
        )?;
        Ok(())
    }

    /// Writes a slice of a trial.
    pub fn add_slice(&mut self, row: &SliceRow) -> Result<(), LedgerError> {
        self.execute(
            "INSERT INTO slice (trial_id, ordinal, start_ns, duration_ns, operations,
                 server_cpu_ns, generator_cpu_ns, validity, reason)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                row.trial_id,
                row.ordinal,
                row.start_ns,
                row.duration_ns,
                row.operations,
                row.server_cpu_ns,
                row.generator_cpu_ns,
                row.validity,
                row.reason,
            ],
        )?;
        Ok(())
    }

    /// Writes a histogram of a trial. Every trial needs the one of all clients, all operations
    /// (both empty) and the whole trial: reports and the view `trials` take their latencies there.
    pub fn add_histogram(&mut self, row: &HistogramRow) -> Result<(), LedgerError> {
        self.execute(
            "INSERT INTO histogram (trial_id, clients, operation, kind, second, count, min_ns,
                 mean_ns, p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            params![
                row.trial_id,
                row.clients,
                row.operation,
                row.kind,
                row.second,
                row.count,
                row.min_ns,
                row.mean_ns,
                row.p50_ns,
                row.p90_ns,
                row.p95_ns,
                row.p99_ns,
                row.p999_ns,
                row.max_ns,
                row.data,
            ],
        )?;
        Ok(())
    }

    /// Writes a wrong answer as evidence.
    pub fn add_finding(&mut self, row: &FindingRow) -> Result<(), LedgerError> {
        self.execute(
            "INSERT INTO finding (trial_id, at_ns, operation, key, expected, received, note)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                row.trial_id,
                row.at_ns,
                row.operation,
                row.key,
                row.expected,
                row.received,
                row.note,
            ],
        )?;
        Ok(())
    }

    /// Writes one of the slowest requests of a trial.
    ///
    /// Fails when the trial has [`SLOW_LIMIT`] of them already: choosing is the writer's part.
    pub fn add_slow(&mut self, row: &SlowRow) -> Result<(), LedgerError> {
        let written = self.execute(
            "INSERT INTO slow (trial_id, at_ns, latency_ns, clients, operation)
             SELECT ?1, ?2, ?3, ?4, ?5
             WHERE (SELECT count(*) FROM slow WHERE trial_id = ?1) < ?6",
            params![
                row.trial_id,
                row.at_ns,
                row.latency_ns,
                row.clients,
                row.operation,
                SLOW_LIMIT,
            ],
        )?;
        if written == 0 {
            return Err(LedgerError::SlowFull { trial: row.trial_id, limit: SLOW_LIMIT });
        }
        Ok(())
    }

    /// Writes a figure that a call measured itself; what isn't a finite number is left out.
    pub fn add_value(&mut self, row: &ValueRow) -> Result<(), LedgerError> {
        if row.value.is_finite() {
            let sql = "INSERT INTO value (trial_id, ordinal, name, value) VALUES (?1, ?2, ?3, ?4)";
            self.execute(sql, params![row.trial_id, row.ordinal, row.name, row.value])?;
        }
        Ok(())
    }

    /// Writes a counter of a service in a trial; what isn't a finite number is left out.
    pub fn add_counter(&mut self, row: &CounterRow) -> Result<(), LedgerError> {
        if row.value.is_finite() {
            let sql = "INSERT INTO counter (trial_id, name, grows, value) VALUES (?1, ?2, ?3, ?4)";
            self.execute(sql, params![row.trial_id, row.name, row.grows, row.value])?;
        }
        Ok(())
    }

    /// Writes a usage figure of a trial; what isn't a finite number is left out.
    pub fn add_usage(&mut self, row: &UsageRow) -> Result<(), LedgerError> {
        if row.value.is_finite() {
            let sql = "INSERT INTO usage (trial_id, name, value) VALUES (?1, ?2, ?3)";
            self.execute(sql, params![row.trial_id, row.name, row.value])?;
        }
        Ok(())
    }

    /// Writes a limit that a trial reached.
    pub fn add_reached(&mut self, row: &ReachedRow) -> Result<(), LedgerError> {
        self.execute(
            "INSERT INTO reached (trial_id, rank, code, strength, evidence)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![row.trial_id, row.rank, row.code, row.strength, row.evidence],
        )?;
        Ok(())
    }

    /// Writes the outcome of a requirement at a point; a later one replaces an earlier.
    pub fn add_requirement(&mut self, row: &RequirementRow) -> Result<(), LedgerError> {
        self.execute(
            "INSERT INTO requirement (run_id, point_id, expression, value, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (point_id, expression)
             DO UPDATE SET value = excluded.value, outcome = excluded.outcome",
            params![row.run_id, row.point_id, row.expression, row.value, row.outcome],
        )?;
        Ok(())
    }

    fn execute(&self, sql: &str, params: impl Params) -> Result<usize, LedgerError> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    fn insert(&self, sql: &str, params: impl Params) -> Result<i64, LedgerError> {
        Ok(self.connection.prepare_cached(sql)?.insert(params)?)
    }
}

/// The settings as the JSON that the column holds: an array of pairs.
fn settings(row: &RunRow) -> String {
    let pairs = row.settings.iter().map(|(key, value)| Value::from(vec![&**key, &**value]));
    Value::from(pairs.collect::<Vec<_>>()).to_string()
}
