//! The list of runs, and the progress of one that is being measured.

use std::collections::HashMap;

use rusqlite::Row;

use crate::error::LedgerError;
use crate::ids::{PointId, RoundId, RunId, TargetId, TrialId};
use crate::open::Ledger;
use crate::read::{POINTS, ROUNDS, TARGETS, TRIALS, effective_state};
use crate::rows::{PointRow, RoundRow, RunRow, TargetRow, TrialRow};
use crate::word_columns::{RunKind, RunState};

/// One run in a list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLine {
    /// Its id.
    pub id: RunId,
    /// Its identity: the same in every ledger that holds it.
    pub uid: String,
    /// The title of its suite.
    pub title: String,
    /// The path of its suite.
    pub path: String,
    /// The command line.
    pub command: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Its state, as in [`RunRow::state`].
    pub state: RunState,
    /// Its note.
    pub note: Option<String>,
    /// Its question.
    pub kind: RunKind,
    /// Its points.
    pub points: u64,
    /// Its trials.
    pub trials: u64,
    /// Those of them that are valid.
    pub valid_trials: u64,
    /// What its report said when it ended; `None` where none was made.
    pub conclusion: Option<Conclusion>,
}

/// What came of a run, as its report says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// `unmeasured`, `broken`, `worse`, `cant_tell` or `fine`.
    pub outcome: String,
    /// The sentences of its conclusion.
    pub sentences: String,
}

/// The progress of a run, without what takes long to read, so that watching it costs the host
/// little.
#[derive(Debug, Clone, PartialEq)]
pub struct SoFar {
    /// Its id.
    pub id: RunId,
    /// The run.
    pub run: RunRow,
    /// The title of its suite.
    pub title: String,
    /// Its targets, in the suite's order.
    pub targets: Vec<(TargetId, TargetRow)>,
    /// Its points, in the sweep's order; those that were not begun yet too.
    pub points: Vec<(PointId, PointRow)>,
    /// Its rounds, by point and number. One without trials is being measured.
    pub rounds: Vec<(RoundId, RoundRow)>,
    /// Its trials, by point, round and target.
    pub trials: Vec<(TrialId, TrialRow)>,
    /// Median and 99th percentile of each trial's latencies, in ns; of those that have any.
    pub percentiles: HashMap<TrialId, (u64, u64)>,
}

fn conclusion(row: &Row<'_>) -> rusqlite::Result<Option<Conclusion>> {
    let (outcome, sentences): (Option<_>, Option<_>) =
        (row.get("outcome")?, row.get("conclusion")?);
    Ok(outcome.zip(sentences).map(|(outcome, sentences)| Conclusion { outcome, sentences }))
}

impl Ledger {
    /// All runs, oldest first.
    pub fn runs(&self) -> Result<Vec<RunLine>, LedgerError> {
        self.rows(
            "SELECT run.*, suite.title, suite.path,
                 (SELECT count(*) FROM trial JOIN round ON round.id = trial.round_id
                  WHERE round.run_id = run.id) AS trials,
                 (SELECT count(*) FROM trial JOIN round ON round.id = trial.round_id
                  WHERE round.run_id = run.id AND trial.validity = 'valid') AS valid_trials,
                 (SELECT count(*) FROM point WHERE point.run_id = run.id) AS points,
                 CASE
                     WHEN EXISTS (SELECT 1 FROM search WHERE run_id = run.id) THEN 'capacity'
                     WHEN EXISTS (SELECT 1 FROM rung JOIN target ON target.id = rung.target_id
                      WHERE target.run_id = run.id) THEN 'ladder'
                     WHEN EXISTS (SELECT 1 FROM comparison WHERE run_id = run.id)
                         THEN 'comparison'
                     ELSE 'sweep'
                 END AS kind
             FROM run JOIN suite ON suite.id = run.suite_id
             ORDER BY run.id",
            [],
            |row| {
                Ok(RunLine {
                    id: row.get("id")?,
                    uid: row.get("uid")?,
                    title: row.get("title")?,
                    path: row.get("path")?,
                    command: row.get("command")?,
                    started_at: row.get("started_at")?,
                    ended_at: row.get("ended_at")?,
                    state: effective_state(row)?,
                    note: row.get("note")?,
                    kind: row.get("kind")?,
                    points: row.get("points")?,
                    trials: row.get("trials")?,
                    valid_trials: row.get("valid_trials")?,
                    conclusion: conclusion(row)?,
                })
            },
        )
    }

    /// The run with the highest id, whatever its state; `None` in an empty ledger.
    pub fn last_run(&self) -> Result<Option<RunId>, LedgerError> {
        Ok(self.connection.query_row("SELECT max(id) FROM run", [], |row| row.get(0))?)
    }

    /// Reads the progress of a run from one snapshot, even while it is being written.
    ///
    /// Fails when there is no such run.
    pub fn so_far(&self, id: RunId) -> Result<SoFar, LedgerError> {
        let snapshot = match self.in_batch() {
            true => None,
            false => Some(self.connection.unchecked_transaction()?),
        };
        let (_, run) = self.run(id)?;
        let title = "SELECT title FROM suite WHERE id = ?1";
        let title = self.connection.query_row(title, [run.suite_id], |row| row.get(0))?;
        let percentiles = "SELECT trial_id, p50_ns, p99_ns FROM histogram
            JOIN trial ON trial.id = histogram.trial_id
            JOIN round ON round.id = trial.round_id
            WHERE round.run_id = ?1 AND clients = '' AND operation = '' AND kind = 'latency'
                AND second IS NULL AND histogram.count > 0";
        let percentiles = self.rows(percentiles, [id], |row| {
            Ok((row.get("trial_id")?, (row.get("p50_ns")?, row.get("p99_ns")?)))
        })?;
        let so_far = SoFar {
            id,
            run,
            title,
            targets: self.all_with_ids(TARGETS, [id])?,
            points: self.all_with_ids(POINTS, [id])?,
            rounds: self.all_with_ids(ROUNDS, [id])?,
            trials: self.all_with_ids(TRIALS, [id])?,
            percentiles: percentiles.into_iter().collect(),
        };
        drop(snapshot);
        Ok(so_far)
    }
}
