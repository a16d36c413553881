//! Events that ran against targets: a row each time that one of the suite's
//! events happened.

use rusqlite::{Row, params};

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::rows::TrialId;

/// One event that happened in a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// The trial.
    pub trial_id: TrialId,
    /// Its place among the events of the trial, from 0, in the order in which they began.
    pub ordinal: u32,
    /// When it began, in ns since the run started.
    pub at_ns: u64,
    /// Its duration: the time for which the target was stopped, or the command ran.
    pub took_ns: u64,
    /// Its name in the suite, or else its action.
    pub name: String,
    /// The action: `stop for 200 ms`, `SIGHUP`, or the words of a command.
    pub action: String,
    /// The exit code of a command; `None` where there was none, or it ended otherwise.
    pub exit_status: Option<i32>,
    /// Why it failed; `None` when it didn't.
    pub failure: Option<String>,
}

/// The events of a run's trials, by trial and number.
pub(crate) const EVENTS: &str = "SELECT event.* FROM event
    JOIN trial ON trial.id = event.trial_id
    JOIN round ON round.id = trial.round_id
    WHERE round.run_id = ?1 ORDER BY round.id, trial.target_id, event.ordinal";

pub(crate) fn event_row(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        trial_id: row.get("trial_id")?,
        ordinal: row.get("ordinal")?,
        at_ns: row.get("at_ns")?,
        took_ns: row.get("took_ns")?,
        name: row.get("name")?,
        action: row.get("action")?,
        exit_status: row.get("exit_status")?,
        failure: row.get("failure")?,
    })
}

impl Ledger {
    /// Writes an event that happened in a trial.
    pub fn add_event(&mut self, row: &EventRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO event (trial_id, ordinal, at_ns, took_ns, name, action, exit_status,
                failure)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.connection.prepare_cached(sql)?.execute(params![
            row.trial_id,
            row.ordinal,
            row.at_ns,
            row.took_ns,
            row.name,
            row.action,
            row.exit_status,
            row.failure,
        ])?;
        Ok(())
    }
}
