//! The distribution of staleness in the row of a group of streams.

use hdrhistogram::Histogram;

use crate::error::LedgerError;
use crate::histogram::{decode, encode};
use crate::rows::StreamRow;

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
