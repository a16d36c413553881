//! The decisions on the rungs of a ladder.

use rusqlite::{OptionalExtension, params};

use crate::error::LedgerError;
use crate::ids::{RunId, TargetId};
use crate::open::Ledger;
use crate::word_columns::Decision;

impl Ledger {
    /// Writes the decision on the rung of that name, and its reason; a later decision replaces an
    /// earlier one. False when the run has no such rung.
    pub fn decide(
        &mut self,
        run: RunId,
        rung: &str,
        decision: Decision,
        reason: &str,
    ) -> Result<bool, LedgerError> {
        let sql = "SELECT target_id FROM rung JOIN target ON target.id = target_id
            WHERE run_id = ?1 AND name = ?2";
        let target: Option<TargetId> =
            self.connection.query_row(sql, params![run, rung], |row| row.get(0)).optional()?;
        let Some(target) = target else { return Ok(false) };
        let sql = "UPDATE rung SET decision = ?2, reason = ?3 WHERE target_id = ?1";
        self.connection.execute(sql, params![target, decision, reason])?;
        Ok(true)
    }
}
