//! The parameters of a comparison, its looks, and the build facts of its targets.

use rusqlite::{OptionalExtension, params};

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::rows::{PointId, RunId, TargetId, TrialId};

/// A run that is one comparison of its two targets: the parameters fixed before the first round.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonRow {
    /// The run.
    pub run_id: RunId,
    /// The probability of a wrong better or worse, over all points and looks.
    pub error: f64,
    /// The most rounds that a point may take.
    pub rounds_most: u32,
    /// The factor by which the targets differ on purpose; `None` when none was declared.
    pub factor: Option<String>,
    /// The smallest detectable difference, as estimated before the first round: 0.02 is
    /// 2 %. `None` without earlier runs to estimate it from.
    pub least_shown: Option<f64>,
    /// The source of that estimate.
    pub least_shown_from: Option<String>,
}

/// One look at the verdict of a point while rounds still came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookRow {
    /// The run.
    pub run_id: RunId,
    /// The point.
    pub point_id: PointId,
    /// Rounds in which both targets were valid by then.
    pub rounds: u32,
}

/// One fact about a target's build: `commit`, `compiler`, `program_bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactRow {
    /// The target.
    pub target_id: TargetId,
    /// Its name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// One figure of one valid trial.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureRow {
    /// The point's label.
    pub point: String,
    /// The target's name.
    pub target: String,
    /// The round, from 1.
    pub round: u32,
    /// The figure, in the unit of its column.
    pub value: f64,
}

impl Ledger {
    /// Writes the parameters of a comparison.
    pub fn add_comparison(&mut self, row: &ComparisonRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO comparison
            (run_id, error, rounds_most, factor, least_shown, least_shown_from)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.prepare_cached(sql)?.execute(params![
            row.run_id,
            row.error,
            row.rounds_most,
            row.factor,
            row.least_shown,
            row.least_shown_from,
        ])?;
        Ok(())
    }

    /// Writes a look; the same one again changes nothing.
    pub fn add_look(&mut self, row: &LookRow) -> Result<(), LedgerError> {
        let sql = "INSERT OR IGNORE INTO look (run_id, point_id, rounds) VALUES (?1, ?2, ?3)";
        let row = params![row.run_id, row.point_id, row.rounds];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// Writes a fact of a target; a later word on it replaces an earlier.
    pub fn add_fact(&mut self, row: &FactRow) -> Result<(), LedgerError> {
        let sql = "INSERT OR REPLACE INTO fact (target_id, name, value) VALUES (?1, ?2, ?3)";
        let row = params![row.target_id, row.name, row.value];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// Every valid trial's value of one column of the view `trials`, by round; trials in which it
    /// is unseen are left out.
    ///
    /// Fails when there is no such column.
    pub fn figures(&self, run: RunId, column: &str) -> Result<Vec<FigureRow>, LedgerError> {
        let column = plain(column);
        let sql = format!(
            "SELECT point, target, round, {column} AS value FROM trials
             WHERE run_id = ?1 AND validity = 'valid' AND {column} IS NOT NULL
             ORDER BY point_id, target, round"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([run], |row| {
            Ok(FigureRow {
                point: row.get("point")?,
                target: row.get("target")?,
                round: row.get("round")?,
                value: row.get("value")?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// One trial's values of columns of the view `trials`, in their order; `None` is unseen.
    ///
    /// Fails when there is no such column, or no such trial.
    pub fn trial_figures(
        &self,
        trial: TrialId,
        columns: &[&str],
    ) -> Result<Vec<Option<f64>>, LedgerError> {
        let names: Vec<&str> = columns.iter().map(|column| plain(column)).collect();
        let sql = format!("SELECT {} FROM trials WHERE trial_id = ?1", names.join(", "));
        let read = |row: &rusqlite::Row<'_>| (0..names.len()).map(|at| row.get(at)).collect();
        Ok(self.connection.prepare_cached(&sql)?.query_row([trial], read)?)
    }

    /// The parameters of a run's comparison, if it is one.
    pub(crate) fn comparison(&self, run: RunId) -> Result<Option<ComparisonRow>, LedgerError> {
        let sql = "SELECT * FROM comparison WHERE run_id = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(ComparisonRow {
                run_id: row.get("run_id")?,
                error: row.get("error")?,
                rounds_most: row.get("rounds_most")?,
                factor: row.get("factor")?,
                least_shown: row.get("least_shown")?,
                least_shown_from: row.get("least_shown_from")?,
            })
        };
        Ok(self.connection.prepare_cached(sql)?.query_row([run], read).optional()?)
    }
}

/// The name of a column, which can't be a parameter and so has to be a plain word.
fn plain(column: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if column.bytes().all(plain) { column } else { "no_such_column" }
}
