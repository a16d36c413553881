//! The updates of streams: one row per trial and group of clients that subscribed.

use hdrhistogram::Histogram;
use rusqlite::{Row, params};

use crate::error::LedgerError;
use crate::histogram::{decode, encode};
use crate::open::Ledger;
use crate::rows::TrialId;

/// The streams of one group of clients in one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamRow {
    /// The trial.
    pub trial_id: TrialId,
    /// The clients' name in the suite.
    pub clients: String,
    /// Number of streams.
    pub streams: u64,
    /// Updates of all of them.
    pub updates: u64,
    /// Values that the target had and that did not come, by the count that values carry.
    pub missed: u64,
    /// Those of them that the target reported as left out.
    pub merged: u64,
    /// Updates of the stream that got the fewest.
    pub least_updates: u64,
    /// Fairness, the evenness of updates over streams, 1/streams to 1 (Jain's index); `None`
    /// without an update.
    pub fairness: Option<f64>,
    /// From the making of a value to its receipt: the median; `None`, as what follows, where
    /// updates don't say when they were made.
    pub staleness_p50_ns: Option<u64>,
    /// The 99th percentile.
    pub staleness_p99_ns: Option<u64>,
    /// The greatest.
    pub staleness_max_ns: Option<u64>,
    /// The distribution: HdrHistogram V2 + DEFLATE, in nanoseconds.
    pub staleness: Vec<u8>,
}

impl StreamRow {
    /// The same with this distribution of staleness.
    ///
    /// Fails only when the histogram is too large for the encoding.
    pub fn with_staleness(self, histogram: &Histogram<u64>) -> Result<StreamRow, LedgerError> {
        let seen = !histogram.is_empty();
        let quantile = |q: f64| seen.then(|| histogram.value_at_quantile(q));
        Ok(StreamRow {
            staleness_p50_ns: quantile(0.5),
            staleness_p99_ns: quantile(0.99),
            staleness_max_ns: seen.then(|| histogram.max()),
            staleness: encode(histogram)?,
            ..self
        })
    }

    /// The distribution of staleness; of no values where updates don't say when they were made.
    ///
    /// Fails when the blob is damaged.
    pub fn staleness(&self) -> Result<Histogram<u64>, LedgerError> {
        decode(&self.staleness)
    }
}

/// The streams of a run's trials, by trial and clients.
pub(crate) const STREAMS: &str = "SELECT stream.* FROM stream
    JOIN trial ON trial.id = stream.trial_id
    JOIN round ON round.id = trial.round_id
    WHERE round.run_id = ?1 ORDER BY round.id, trial.target_id, clients";

pub(crate) fn stream_row(row: &Row<'_>) -> rusqlite::Result<StreamRow> {
    Ok(StreamRow {
        trial_id: row.get("trial_id")?,
        clients: row.get("clients")?,
        streams: row.get("streams")?,
        updates: row.get("updates")?,
        missed: row.get("missed")?,
        merged: row.get("merged")?,
        least_updates: row.get("least_updates")?,
        fairness: row.get("fairness")?,
        staleness_p50_ns: row.get("staleness_p50_ns")?,
        staleness_p99_ns: row.get("staleness_p99_ns")?,
        staleness_max_ns: row.get("staleness_max_ns")?,
        staleness: row.get("staleness")?,
    })
}

impl Ledger {
    /// Writes the updates of a trial's group of clients that subscribed.
    pub fn add_stream(&mut self, row: &StreamRow) -> Result<(), LedgerError> {
        let sql = "INSERT INTO stream (trial_id, clients, streams, updates, missed, merged,
                least_updates, fairness, staleness_p50_ns, staleness_p99_ns, staleness_max_ns,
                staleness)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.connection.prepare_cached(sql)?.execute(params![
            row.trial_id,
            row.clients,
            row.streams,
            row.updates,
            row.missed,
            row.merged,
            row.least_updates,
            row.fairness,
            row.staleness_p50_ns,
            row.staleness_p99_ns,
            row.staleness_max_ns,
            row.staleness,
        ])?;
        Ok(())
    }
}
