//! Searches for the highest load, and the groups of clients of a point.

use rusqlite::{OptionalExtension, Row, params};

use crate::error::LedgerError;
use crate::open::Ledger;
use crate::rows::{PointId, RunId};
use crate::word_columns::{ArrivalsKind, RequirementOutcome};

/// A run that searches the highest load that meets every requirement; its points are loads.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRow {
    /// The run.
    pub run_id: RunId,
    /// The suite's key whose value is the load: `clients.arrivals.rate`.
    pub key: String,
    /// The gap between held and broken that is narrow enough: 0.02 is 2 %.
    pub precision: f64,
    /// The error probability of the outcome of one load.
    pub error: f64,
    /// The most rounds that one load may take.
    pub rounds_most: u32,
}

/// One load that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeRow {
    /// Its point.
    pub point_id: PointId,
    /// The load, in requests per second or as a number.
    pub load: f64,
    /// Whether every requirement held.
    pub outcome: RequirementOutcome,
    /// The broken requirement, or the reason why it is undecided.
    pub reason: Option<String>,
}

/// One group of clients at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientsRow {
    /// The point.
    pub point_id: PointId,
    /// Its name in the suite.
    pub name: String,
    /// Number of connections, each one slot.
    pub connections: u64,
    /// Requests that each keeps in flight.
    pub pipeline: u64,
    /// Number of the generator's threads that drive it.
    pub threads: u64,
    /// When requests are sent.
    pub arrivals: ArrivalsKind,
    /// The pause between an answer and the next request; `None` without one.
    pub think_ns: Option<u64>,
}

impl Ledger {
    /// Writes the parameters of a search.
    pub fn add_search(&mut self, row: &SearchRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO search (run_id, key, precision, error, rounds_most)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![row.run_id, row.key, row.precision, row.error, row.rounds_most];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// Writes the outcome of a load.
    pub fn add_probe(&mut self, row: &ProbeRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO probe (point_id, load, outcome, reason) VALUES (?1, ?2, ?3, ?4)";
        let row = params![row.point_id, row.load, row.outcome, row.reason];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// Writes a group of clients of a point.
    pub fn add_clients(&mut self, row: &ClientsRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO clients
            (point_id, name, connections, pipeline, threads, arrivals, think_ns)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.connection.prepare_cached(sql)?.execute(params![
            row.point_id,
            row.name,
            row.connections,
            row.pipeline,
            row.threads,
            row.arrivals,
            row.think_ns,
        ])?;
        Ok(())
    }

    /// The parameters of a run's search, if it is one.
    pub(crate) fn search(&self, run: RunId) -> Result<Option<SearchRow>, LedgerError> {
        let sql = "SELECT * FROM search WHERE run_id = ?1";
        let read = |row: &Row<'_>| {
            Ok(SearchRow {
                run_id: row.get("run_id")?,
                key: row.get("key")?,
                precision: row.get("precision")?,
                error: row.get("error")?,
                rounds_most: row.get("rounds_most")?,
            })
        };
        Ok(self.connection.prepare_cached(sql)?.query_row([run], read).optional()?)
    }
}

pub(crate) const PROBES: &str = "SELECT probe.* FROM probe
    JOIN point ON point.id = probe.point_id WHERE point.run_id = ?1 ORDER BY point.ordinal";
pub(crate) const CLIENTS: &str = "SELECT clients.* FROM clients
    JOIN point ON point.id = clients.point_id WHERE point.run_id = ?1
    ORDER BY point.ordinal, clients.name";

pub(crate) fn probe_row(row: &Row<'_>) -> rusqlite::Result<ProbeRow> {
    Ok(ProbeRow {
        point_id: row.get("point_id")?,
        load: row.get("load")?,
        outcome: row.get("outcome")?,
        reason: row.get("reason")?,
    })
}

pub(crate) fn clients_row(row: &Row<'_>) -> rusqlite::Result<ClientsRow> {
    Ok(ClientsRow {
        point_id: row.get("point_id")?,
        name: row.get("name")?,
        connections: row.get("connections")?,
        pipeline: row.get("pipeline")?,
        threads: row.get("threads")?,
        arrivals: row.get("arrivals")?,
        think_ns: row.get("think_ns")?,
    })
}
