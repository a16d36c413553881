//! The metrics of trials, as they were computed when the trial was stored, and the figures that
//! suites declare.

use rusqlite::params;

use crate::error::LedgerError;
use crate::ids::{RunId, TrialId};
use crate::open::Ledger;
use crate::rows::{ProgramFigureRow, TrialFigureRow};

/// One figure of one valid trial.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureRow {
    /// The point's label.
    pub point: String,
    /// The target's name.
    pub target: String,
    /// The round, from 1.
    pub round: u32,
    /// The figure, in the unit of its metric.
    pub value: f64,
}

impl Ledger {
    /// The figures that the suite of a run declares, in order.
    pub fn program_figures(&self, run: RunId) -> Result<Vec<ProgramFigureRow>, LedgerError> {
        self.all("WHERE run_id = ?1 ORDER BY ordinal, name", [run])
    }

    /// Writes a metric of a trial by its name in suites; a later value replaces an earlier.
    pub fn add_figure(
        &mut self,
        trial_id: TrialId,
        name: &str,
        value: f64,
    ) -> Result<(), LedgerError> {
        let row = TrialFigureRow { trial_id, name: name.to_owned(), value };
        self.put("INSERT OR REPLACE", &row, &[]).map(drop)
    }

    /// A metric, by its name in suites, of every valid trial of a run, by round; trials in which it
    /// is unseen are left out.
    pub fn figures(&self, run: RunId, name: &str) -> Result<Vec<FigureRow>, LedgerError> {
        let sql =
            "SELECT point.label AS point, target.name AS target, round.ordinal AS round, value
            FROM round
            JOIN trial ON trial.round_id = round.id
            JOIN figure ON figure.trial_id = trial.id AND figure.name = ?2
            JOIN point ON point.id = round.point_id
            JOIN target ON target.id = trial.target_id
            WHERE round.run_id = ?1 AND trial.validity = 'valid'
            ORDER BY round.point_id, target.name, round.ordinal";
        self.rows(sql, params![run, name], |row| {
            Ok(FigureRow {
                point: row.get("point")?,
                target: row.get("target")?,
                round: row.get("round")?,
                value: row.get("value")?,
            })
        })
    }
}
