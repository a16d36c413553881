//! The runs of one suite, oldest first, with what tells their hosts and builds apart.

use rusqlite::params;
use serde_json::{Map, Value};

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::rows::RunId;

/// A run of a suite among others.
#[derive(Debug, Clone, PartialEq)]
pub struct PastRun {
    /// Its id.
    pub id: RunId,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What was set beside the suite's text, as JSON.
    pub settings: String,
    /// The facts of its host and build, by name.
    pub fingerprint: Map<String, Value>,
    /// The metric that carries its verdicts, by its name in suites.
    pub primary_metric: String,
    /// The name of its first target.
    pub target: String,
}

impl Ledger {
    /// Every ended run of the suite with this title that is no search, oldest first.
    pub fn past_runs(&self, title: &str) -> Result<Vec<PastRun>, LedgerError> {
        let sql = "SELECT run.id, run.started_at, run.settings, run.primary_metric,
                fingerprint.json AS json, target.name AS target
            FROM run
            JOIN suite ON suite.id = run.suite_id
            JOIN fingerprint ON fingerprint.id = run.fingerprint_id
            JOIN target ON target.run_id = run.id AND target.ordinal = 0
            WHERE suite.title = ?1 AND run.state <> 'running'
                AND run.id NOT IN (SELECT run_id FROM search)
            ORDER BY run.started_at, run.id";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![title], |row| {
            let json: String = row.get("json")?;
            Ok(PastRun {
                id: row.get("id")?,
                started_at: row.get("started_at")?,
                settings: row.get("settings")?,
                // The schema checks that it is JSON; what isn't an object has no facts.
                fingerprint: serde_json::from_str(&json).unwrap_or_default(),
                primary_metric: row.get("primary_metric")?,
                target: row.get("target")?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
