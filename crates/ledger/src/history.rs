//! The runs of one suite, oldest first, with the facts of their hosts and builds.

use rusqlite::params;
use serde_json::{Map, Value};

use crate::error::LedgerError;
use crate::ids::RunId;
use crate::open::Ledger;

/// A run of a suite among others.
#[derive(Debug, Clone, PartialEq)]
pub struct PastRun {
    /// Its id.
    pub id: RunId,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Settings beside the suite's text, as JSON.
    pub settings: String,
    /// The facts of its host and build, by name.
    pub fingerprint: Map<String, Value>,
    /// The metric that carries its verdicts, by its name in suites.
    pub primary_metric: String,
    /// The name of its first target; without `.a` where it compares a target with itself.
    pub target: String,
    /// Whether it is a comparison of two targets, which need not be the suite's first.
    pub compares: bool,
    /// Whether it compares a target with itself, so that its targets are called `NAME.a`, `NAME.b`.
    pub with_itself: bool,
}

impl PastRun {
    /// The suite's name of the target with this name in the run.
    pub fn plain_name<'a>(&self, target: &'a str) -> &'a str {
        let plain = target.strip_suffix(".a").or_else(|| target.strip_suffix(".b"));
        plain.filter(|_| self.with_itself).unwrap_or(target)
    }
}

impl Ledger {
    /// Every ended run of the suite with this title that is no search, oldest first.
    pub fn past_runs(&self, title: &str) -> Result<Vec<PastRun>, LedgerError> {
        let sql = "SELECT run.id, run.started_at, run.settings, run.primary_metric,
                fingerprint.json AS json, target.name AS target, other.name AS other,
                run.id IN (SELECT run_id FROM comparison) AS compares
            FROM run
            JOIN suite ON suite.id = run.suite_id
            JOIN fingerprint ON fingerprint.id = run.fingerprint_id
            JOIN target ON target.run_id = run.id AND target.ordinal = 0
            LEFT JOIN target AS other ON other.run_id = run.id AND other.ordinal = 1
            WHERE suite.title = ?1 AND run.state <> 'running'
                AND run.id NOT IN (SELECT run_id FROM search)
            ORDER BY run.started_at, run.id";
        self.rows(sql, params![title], |row| {
            let json: String = row.get("json")?;
            let (target, compares): (String, bool) = (row.get("target")?, row.get("compares")?);
            let other: Option<String> = row.get("other")?;
            let plain = target.strip_suffix(".a").filter(|_| compares);
            let plain = plain.filter(|plain| other == Some(format!("{plain}.b")));
            Ok(PastRun {
                id: row.get("id")?,
                started_at: row.get("started_at")?,
                settings: row.get("settings")?,
                // The schema checks that it is JSON; what isn't an object has no facts.
                fingerprint: serde_json::from_str(&json).unwrap_or_default(),
                primary_metric: row.get("primary_metric")?,
                target: plain.unwrap_or(&target).to_owned(),
                compares,
                with_itself: plain.is_some(),
            })
        })
    }
}
