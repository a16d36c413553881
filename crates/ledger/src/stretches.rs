//! The distribution of latencies in the row of a stretch of a schedule.

use hdrhistogram::Histogram;

use crate::error::LedgerError;
use crate::histogram::{decode, encode};
use crate::rows::StretchRow;

impl StretchRow {
    /// The same with these latencies.
    ///
    /// Fails only when the histogram is too large for the encoding.
    pub fn with_latency(self, histogram: &Histogram<u64>) -> Result<StretchRow, LedgerError> {
        if histogram.is_empty() {
            return Ok(self);
        }
        Ok(StretchRow {
            latency_p50_ns: Some(histogram.value_at_quantile(0.5)),
            latency_p99_ns: Some(histogram.value_at_quantile(0.99)),
            latency: Some(encode(histogram)?),
            ..self
        })
    }

    /// Its latencies, where they were kept.
    ///
    /// Fails when the blob is damaged.
    pub fn latency(&self) -> Option<Result<Histogram<u64>, LedgerError>> {
        self.latency.as_deref().map(decode)
    }
}
