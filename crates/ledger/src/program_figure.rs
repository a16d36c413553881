//! The figures that a suite declares and its programs report, and their values by trial.

use rusqlite::{Row, params};

use crate::comparison::FigureRow;
use crate::error::LedgerError;
use crate::open::Ledger;
use crate::rows::{RunId, TrialId};
use crate::word_columns::Better;

/// One figure that a suite declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFigureRow {
    /// The run.
    pub run_id: RunId,
    /// Its place among the declared figures.
    pub ordinal: u32,
    /// Its name, as programs report it.
    pub name: String,
    /// Which direction of it is good.
    pub better: Better,
    /// The word of its unit.
    pub unit: String,
}

impl Ledger {
    /// Writes a declared figure.
    pub fn add_program_figure(&mut self, row: &ProgramFigureRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO program_figure (run_id, ordinal, name, better, unit)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![row.run_id, row.ordinal, row.name, row.better, row.unit];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// The figures that the suite of a run declares, in order.
    pub fn program_figures(&self, run: RunId) -> Result<Vec<ProgramFigureRow>, LedgerError> {
        let sql = "SELECT * FROM program_figure WHERE run_id = ?1 ORDER BY ordinal, name";
        self.rows(sql, [run], |row: &Row<'_>| {
            Ok(ProgramFigureRow {
                run_id: row.get("run_id")?,
                ordinal: row.get("ordinal")?,
                name: row.get("name")?,
                better: row.get("better")?,
                unit: row.get("unit")?,
            })
        })
    }

    /// The figure of this name of every valid trial that reported it, by round: the mean over the
    /// trial's calls.
    pub fn reported_figures(&self, run: RunId, name: &str) -> Result<Vec<FigureRow>, LedgerError> {
        let sql = "SELECT point, target, round, avg(value.value) AS value
            FROM trials JOIN value ON value.trial_id = trials.trial_id
            WHERE trials.run_id = ?1 AND validity = 'valid' AND value.name = ?2
            GROUP BY trials.trial_id ORDER BY point_id, target, round";
        self.rows(sql, params![run, name], |row: &Row<'_>| {
            Ok(FigureRow {
                point: row.get("point")?,
                target: row.get("target")?,
                round: row.get("round")?,
                value: row.get("value")?,
            })
        })
    }

    /// The figure of this name of one trial, the mean over its calls; `None` when it reported none.
    pub fn reported_figure(&self, trial: TrialId, name: &str) -> Result<Option<f64>, LedgerError> {
        let sql = "SELECT avg(value) FROM value WHERE trial_id = ?1 AND name = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row(params![trial, name], |row| row.get(0))?)
    }
}
