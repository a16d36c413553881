//! Rungs of a ladder, the decisions on them, and the profiles of their CPU time.

use rusqlite::{OptionalExtension, Row, params};

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::rows::{PointId, RunId, TargetId};

/// The decision on a rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The change stays.
    Kept,
    /// The change was backed out.
    BackedOut,
}

impl Decision {
    /// As it is stored and shown.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Kept => "kept",
            Decision::BackedOut => "backed out",
        }
    }

    /// The decision of that word.
    pub fn named(word: &str) -> Option<Decision> {
        [Decision::Kept, Decision::BackedOut].into_iter().find(|one| one.word() == word)
    }
}

/// One rung: a target with its description and decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RungRow {
    /// The target.
    pub target_id: TargetId,
    /// The change, in words.
    pub note: String,
    /// The decision; `None` as long as there is none.
    pub decision: Option<Decision>,
    /// Why.
    pub reason: Option<String>,
}

/// The share of CPU time that one function took in one profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileRow {
    /// The point.
    pub point_id: PointId,
    /// The target.
    pub target_id: TargetId,
    /// Which of the profiles, from 1.
    pub ordinal: u32,
    /// The function.
    pub function: String,
    /// Its share of the samples, 0 to 1.
    pub share: f64,
}

pub(crate) const RUNGS: &str = "SELECT rung.* FROM rung
    JOIN target ON target.id = rung.target_id
    WHERE target.run_id = ?1 ORDER BY target.ordinal";

pub(crate) const PROFILES: &str = "SELECT profile.* FROM profile
    JOIN point ON point.id = profile.point_id
    WHERE point.run_id = ?1 ORDER BY point_id, target_id, profile.ordinal, share DESC";

pub(crate) fn rung_row(row: &Row<'_>) -> rusqlite::Result<RungRow> {
    let decision: Option<String> = row.get("decision")?;
    Ok(RungRow {
        target_id: row.get("target_id")?,
        note: row.get("note")?,
        decision: decision.as_deref().and_then(Decision::named),
        reason: row.get("reason")?,
    })
}

pub(crate) fn profile_row(row: &Row<'_>) -> rusqlite::Result<ProfileRow> {
    Ok(ProfileRow {
        point_id: row.get("point_id")?,
        target_id: row.get("target_id")?,
        ordinal: row.get("ordinal")?,
        function: row.get("function")?,
        share: row.get("share")?,
    })
}

impl Ledger {
    /// Writes that a target is a rung.
    pub fn add_rung(&mut self, row: &RungRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO rung (target_id, note, decision, reason) VALUES (?1, ?2, ?3, ?4)";
        let decision = row.decision.map(Decision::word);
        let row = params![row.target_id, row.note, decision, row.reason];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

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
        self.connection.execute(sql, params![target, decision.word(), reason])?;
        Ok(true)
    }

    /// Writes a function's share in one profile.
    pub fn add_profile(&mut self, row: &ProfileRow) -> Result<(), LedgerError> {
        let sql = "INSERT OR REPLACE INTO profile (point_id, target_id, ordinal, function, share)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![row.point_id, row.target_id, row.ordinal, row.function, row.share];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}
