//! The updates of streams, of one trial or of all valid ones of a target at a point.

use judge::median;
use ledger::{LedgerError, StreamRow, TrialRow};
use serde::Serialize;

use crate::latency::Latency;

/// The updates of streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamFigures {
    /// Number of streams in a trial.
    pub streams: u64,
    /// Updates of all of them.
    pub updates: u64,
    /// Updates per second of measured time.
    pub updates_per_s: Option<f64>,
    /// Values that the target had and that did not come, by the count that values carry.
    pub missed: u64,
    /// Those of them that the target reported as left out.
    pub merged: u64,
    /// Fairness, the evenness of updates over streams, 0 to 1; of several trials the median.
    pub fairness: Option<f64>,
    /// Updates of the stream that got the fewest, in any trial.
    pub least_updates: u64,
    /// From the making of a value to its receipt; of no values where updates don't say when.
    #[serde(skip)]
    pub staleness: Latency,
}

impl StreamFigures {
    /// The figures of these rows, which belong to these trials; `None` where nothing streams.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub(crate) fn of(
        rows: &[&StreamRow],
        trials: &[&TrialRow],
    ) -> Result<Option<StreamFigures>, LedgerError> {
        let Some(first) = rows.first() else { return Ok(None) };
        let sum = |of: fn(&StreamRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
        let of_one = rows.iter().filter(|row| row.trial_id == first.trial_id);
        let measured_ns: u64 = trials.iter().map(|trial| trial.measured_ns).sum();
        let updates = sum(|row| row.updates);
        // Of one group its own fairness; of several the trial's, which is over all their streams.
        let groups = of_one.clone().count();
        let fairness: Vec<f64> = match groups {
            1 => rows.iter().filter_map(|row| row.fairness).collect(),
            _ => trials.iter().filter_map(|trial| trial.fairness).collect(),
        };
        Ok(Some(StreamFigures {
            streams: of_one.map(|row| row.streams).sum(),
            updates,
            updates_per_s: (measured_ns > 0).then(|| updates as f64 * 1e9 / measured_ns as f64),
            missed: sum(|row| row.missed),
            merged: sum(|row| row.merged),
            fairness: median(&fairness),
            least_updates: rows.iter().map(|row| row.least_updates).min().unwrap_or(0),
            staleness: Latency::of_all(rows.iter().map(|row| row.staleness()))?,
        }))
    }

    /// Those of each group of clients, in the order of their names.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub(crate) fn by_clients(
        rows: &[&StreamRow],
        trials: &[&TrialRow],
    ) -> Result<Vec<(String, StreamFigures)>, LedgerError> {
        let mut names: Vec<&str> = rows.iter().map(|row| &row.clients[..]).collect();
        names.sort_unstable();
        names.dedup();
        let mut groups = Vec::new();
        for name in names {
            let own = rows.iter().copied().filter(|row| row.clients == name);
            let figures = StreamFigures::of(&own.collect::<Vec<_>>(), trials)?;
            groups.extend(figures.map(|figures| (name.to_owned(), figures)));
        }
        Ok(groups)
    }
}
