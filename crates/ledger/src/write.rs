//! Writing a ledger: one method per table, and batches.

use std::borrow::Borrow;

use rusqlite::types::ToSql;
use rusqlite::{OptionalExtension, Params, params, params_from_iter};

use crate::error::LedgerError;
use crate::ids::{FingerprintId, PointId, RoundId, RunId, SuiteId, TargetId, TrialId};
use crate::open::Ledger;
use crate::process::ProcessMark;
use crate::rows::{
    AdviceRow, CallRow, CarriedRow, ClientsRow, ComparisonRow, CounterRow, EventRow, FactRow,
    FindingRow, FingerprintRow, FloorRow, HistogramRow, LookRow, PointRow, ProbeRow, ProfileRow,
    ProgramFigureRow, ReachedRow, RequirementRow, RoundRow, RunRow, RungRow, SLOW_LIMIT, SearchRow,
    SliceRow, SlowRow, StatementRow, StreamRow, StretchRow, SuiteRow, TargetRow, TrialRow,
    UsageRow, ValueRow, VerdictRow,
};
use crate::runs::Conclusion;
use crate::table::Row;
use crate::word_columns::RunState;

/// Defines the methods that write one row as it is: of which table, and by which words of SQL.
macro_rules! writers {
    (@id) => { () };
    (@id $id:ident) => { $id };
    (@of $put:expr) => {{ $put; }};
    (@of $put:expr, $id:ident) => { $id::from($put) };
    ($($(#[$doc:meta])* $name:ident($row:ident) $(-> $id:ident)? = $verb:literal;)+) => {
        impl Ledger {$(
            $(#[$doc])*
            pub fn $name(&mut self, row: &$row) -> Result<writers!(@id $($id)?), LedgerError> {
                Ok(writers!(@of self.put($verb, row, &[])? $(, $id)?))
            }
        )+}
    };
}

writers! {
    /// Writes a target of a run.
    add_target(TargetRow) -> TargetId = "INSERT";
    /// Writes a point of a run.
    add_point(PointRow) -> PointId = "INSERT";
    /// Writes a round of a point.
    add_round(RoundRow) -> RoundId = "INSERT";
    /// Writes a trial: [`TrialRow::unfinished`] when it begins, so that its slices, seconds and
    /// findings have something to belong to.
    add_trial(TrialRow) -> TrialId = "INSERT";
    /// Writes a slice of a trial.
    add_slice(SliceRow) = "INSERT";
    /// Writes a histogram of a trial. Every trial needs the one of all clients, all operations
    /// (both empty) and the whole trial: reports and the view `trials` take their latencies there.
    add_histogram(HistogramRow) = "INSERT";
    /// Writes a wrong answer as evidence.
    add_finding(FindingRow) = "INSERT";
    /// Writes the updates of a trial's group of clients that subscribed.
    add_stream(StreamRow) = "INSERT";
    /// Writes a stretch of a schedule in a trial.
    add_stretch(StretchRow) = "INSERT";
    /// Writes an event that happened in a trial.
    add_event(EventRow) = "INSERT";
    /// Writes a limit that a trial reached.
    add_reached(ReachedRow) = "INSERT";
    /// Writes a statement that a target executed.
    add_statement(StatementRow) = "INSERT";
    /// Writes what would help a target.
    add_advice(AdviceRow) = "INSERT";
    /// Writes a declared figure.
    add_program_figure(ProgramFigureRow) = "INSERT";
    /// Writes whether a target carries a load.
    add_carried(CarriedRow) = "INSERT OR REPLACE";
    /// Writes the parameters of a comparison.
    add_comparison(ComparisonRow) = "INSERT";
    /// Writes a look; the same one again changes nothing.
    add_look(LookRow) = "INSERT OR IGNORE";
    /// Writes a fact of a target; a later word on it replaces an earlier.
    add_fact(FactRow) = "INSERT OR REPLACE";
    /// Writes the parameters of a search.
    add_search(SearchRow) = "INSERT";
    /// Writes the outcome of a load.
    add_probe(ProbeRow) = "INSERT";
    /// Writes a group of clients of a point.
    add_clients(ClientsRow) = "INSERT";
    /// Writes that a target is a rung.
    add_rung(RungRow) = "INSERT";
    /// Writes the count of a system call.
    add_call(CallRow) = "INSERT";
    /// Writes a floor of the run's host.
    add_floor(FloorRow) = "INSERT OR REPLACE";
    /// Writes a function's share in one profile.
    add_profile(ProfileRow) = "INSERT OR REPLACE";
}

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
        Ok(self.put_once(&row.hash, row)?.into())
    }

    /// The id of a fingerprint: of the row with this hash if there is one, else of a new row.
    pub fn add_fingerprint(&mut self, row: &FingerprintRow) -> Result<FingerprintId, LedgerError> {
        Ok(self.put_once(&row.hash, row)?.into())
    }

    /// Writes a new run, marked with the calling process and with an identity drawn for it, and
    /// returns its id.
    ///
    /// Fails besides when `/proc` can't be read.
    pub fn add_run(&mut self, row: &RunRow) -> Result<RunId, LedgerError> {
        let process = ProcessMark::current().map_err(LedgerError::Process)?;
        let draw = "SELECT lower(hex(randomblob(16)))";
        let uid: String = self.connection.query_row(draw, [], |row| row.get(0))?;
        let also: [(&str, &dyn ToSql); 5] = [
            ("uid", &uid),
            ("pid", &process.pid),
            ("pid_namespace", &process.pid_namespace),
            ("boot_id", &process.boot_id),
            ("process_started_ticks", &process.started_ticks),
        ];
        Ok(self.put("INSERT", row, &also)?.into())
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

    /// Keeps the conclusion of a run's report with its outcome in a word, for lists of runs.
    pub fn conclude(&mut self, run: RunId, of: &Conclusion) -> Result<(), LedgerError> {
        let set = "UPDATE run SET outcome = ?2, conclusion = ?3 WHERE id = ?1";
        self.execute(set, params![run, of.outcome, of.sentences])?;
        Ok(())
    }

    /// Replaces a trial's placeholder, of the same round and target, by what was measured.
    pub fn set_trial(&mut self, trial: TrialId, row: &TrialRow) -> Result<(), LedgerError> {
        let set = TrialRow::TABLE.fields.iter().map(|column| format!("{} = ?", column.name));
        let set = set.collect::<Vec<_>>().join(", ");
        let sql = format!("UPDATE trial SET {set} WHERE id = ?");
        let values = row.values()?.into_iter().chain([trial.get().into()]);
        self.execute(&sql, params_from_iter(values))?;
        Ok(())
    }

    /// Writes one of the slowest requests of a trial.
    ///
    /// Fails when the trial has [`SLOW_LIMIT`] of them already: choosing is the writer's part.
    pub fn add_slow(&mut self, row: &SlowRow) -> Result<(), LedgerError> {
        let count = "SELECT count(*) FROM slow WHERE trial_id = ?1";
        let mut count = self.connection.prepare_cached(count)?;
        let written: usize = count.query_row([row.trial_id], |found| found.get(0))?;
        if written >= SLOW_LIMIT {
            return Err(LedgerError::SlowFull { trial: row.trial_id, limit: SLOW_LIMIT });
        }
        self.put("INSERT", row, &[]).map(drop)
    }

    /// Writes a figure that a call measured itself; what isn't a finite number is left out.
    pub fn add_value(&mut self, row: &ValueRow) -> Result<(), LedgerError> {
        self.put_finite(row.value, row)
    }

    /// Writes a counter of a service in a trial; what isn't a finite number is left out.
    pub fn add_counter(&mut self, row: &CounterRow) -> Result<(), LedgerError> {
        self.put_finite(row.value, row)
    }

    /// Writes a usage figure of a trial; what isn't a finite number is left out.
    pub fn add_usage(&mut self, row: &UsageRow) -> Result<(), LedgerError> {
        self.put_finite(row.value, row)
    }

    /// Writes the outcome of a requirement at a point; a later one replaces an earlier.
    pub fn add_requirement(&mut self, row: &RequirementRow) -> Result<(), LedgerError> {
        self.put("INSERT OR REPLACE", row, &[])?;
        Ok(())
    }

    /// Writes the verdicts of a run: all of them or, when one is refused, none.
    pub fn add_verdicts(&mut self, rows: &[VerdictRow]) -> Result<(), LedgerError> {
        self.connection.execute_batch("SAVEPOINT verdicts")?;
        let written = rows.iter().try_for_each(|row| self.put("INSERT", row, &[]).map(drop));
        self.connection.execute_batch(match written {
            Ok(()) => "RELEASE verdicts",
            Err(_) => "ROLLBACK TO verdicts; RELEASE verdicts",
        })?;
        written
    }

    fn put_finite(&self, value: f64, row: &impl Row) -> Result<(), LedgerError> {
        if value.is_finite() {
            self.put("INSERT", row, &[])?;
        }
        Ok(())
    }

    /// The id of the row with this hash, which is written if there is none.
    fn put_once<R: Row>(&self, hash: &str, row: &R) -> Result<i64, LedgerError> {
        match self.id_of(R::TABLE.name, &hash)? {
            Some(id) => Ok(id),
            None => self.put("INSERT", row, &[]),
        }
    }

    /// The id of the row with this hash.
    pub(crate) fn id_of(&self, table: &str, hash: &dyn ToSql) -> Result<Option<i64>, LedgerError> {
        let known = format!("SELECT id FROM {table} WHERE hash = ?1");
        Ok(self.connection.query_row(&known, [hash], |found| found.get(0)).optional()?)
    }

    /// Writes a row, with the columns that are no fields of it, and returns its id if it has one.
    pub(crate) fn put<R: Row>(
        &self,
        verb: &str,
        row: &R,
        also: &[(&str, &dyn ToSql)],
    ) -> Result<i64, LedgerError> {
        let fields = R::TABLE.fields.iter().map(|column| column.name);
        let names: Vec<&str> = fields.chain(also.iter().map(|(name, _)| *name)).collect();
        let values = row.values()?;
        let values = values.iter().map(|value| value as &dyn ToSql);
        let values = values.chain(also.iter().map(|(_, value)| *value));
        self.insert(verb, R::TABLE.name, &names, params_from_iter(values))
    }

    /// Writes values of these columns, and returns the row's id if it has one.
    pub(crate) fn insert(
        &self,
        verb: &str,
        table: &str,
        columns: &[impl Borrow<str>],
        values: impl Params,
    ) -> Result<i64, LedgerError> {
        let (marks, columns) = (vec!["?"; columns.len()].join(", "), columns.join(", "));
        self.execute(&format!("{verb} INTO {table} ({columns}) VALUES ({marks})"), values)?;
        Ok(self.connection.last_insert_rowid())
    }

    fn execute(&self, sql: &str, params: impl Params) -> Result<usize, LedgerError> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }
}
