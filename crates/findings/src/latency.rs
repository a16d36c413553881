//! A distribution of times: its count, percentiles and mean.

use ledger::{Histogram, HistogramKind, HistogramRow, LedgerError};
use serde::Serialize;

/// A latency distribution, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Latency {
    /// Number of values.
    #[serde(skip)]
    pub count: u64,
    /// Median.
    #[serde(rename = "p50")]
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    #[serde(rename = "p90")]
    pub p90_ns: Option<u64>,
    /// 95th percentile.
    #[serde(rename = "p95")]
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    #[serde(rename = "p99")]
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    #[serde(rename = "p999")]
    pub p999_ns: Option<u64>,
    /// Greatest value.
    #[serde(rename = "max")]
    pub max_ns: Option<u64>,
    /// Arithmetic mean.
    #[serde(rename = "mean")]
    pub mean_ns: Option<f64>,
}

impl Latency {
    /// The distribution, where it has any value.
    pub fn seen(&self) -> Option<&Latency> {
        (self.count > 0).then_some(self)
    }

    /// The distribution of all values of these histograms. The row of a single one holds its
    /// percentiles, so that only several are decoded, to be merged.
    pub(crate) fn merged(rows: &[&HistogramRow]) -> Result<Latency, LedgerError> {
        match rows {
            [one] => Ok(Latency::of_row(one)),
            _ => Latency::of_all(rows.iter().map(|row| row.histogram())),
        }
    }

    /// As its row has it.
    fn of_row(row: &HistogramRow) -> Latency {
        Latency {
            count: row.count,
            p50_ns: row.p50_ns,
            p90_ns: row.p90_ns,
            p95_ns: row.p95_ns,
            p99_ns: row.p99_ns,
            p999_ns: row.p999_ns,
            max_ns: row.max_ns,
            mean_ns: row.mean_ns,
        }
    }

    /// The distribution of all values of these histograms, of which one is in memory at a time.
    pub(crate) fn of_all(
        histograms: impl Iterator<Item = Result<Histogram<u64>, LedgerError>>,
    ) -> Result<Latency, LedgerError> {
        let mut all: Option<Histogram<u64>> = None;
        for one in histograms {
            let one = one?;
            match &mut all {
                None => all = Some(one),
                Some(sum) => sum.add(one).map_err(LedgerError::histogram)?,
            }
        }
        let Some(all) = all.filter(|all| !all.is_empty()) else { return Ok(Latency::default()) };
        Ok(Latency {
            count: all.len(),
            p50_ns: Some(all.value_at_quantile(0.5)),
            p90_ns: Some(all.value_at_quantile(0.9)),
            p95_ns: Some(all.value_at_quantile(0.95)),
            p99_ns: Some(all.value_at_quantile(0.99)),
            p999_ns: Some(all.value_at_quantile(0.999)),
            max_ns: Some(all.max()),
            mean_ns: Some(all.mean()),
        })
    }
}

/// The latency histogram over all clients and operations of one trial.
pub(crate) fn overall<'a>(rows: &[&'a HistogramRow]) -> Option<&'a HistogramRow> {
    let whole = |row: &&&HistogramRow| {
        let all = row.clients.is_empty() && row.operation.is_empty() && row.second.is_none();
        all && row.kind == HistogramKind::Latency
    };
    rows.iter().find(whole).copied()
}

/// Not a sum over groups or operations, of which the parts are stored too.
pub(crate) fn is_of_a_group(row: &HistogramRow) -> bool {
    !row.clients.is_empty() && !row.operation.is_empty() && row.second.is_none()
}

/// The histograms of all send lags of one trial: the one over all groups and operations where it
/// is stored, else each of theirs.
pub(crate) fn lags<'a>(rows: &[&'a HistogramRow]) -> Vec<&'a HistogramRow> {
    let lags = || rows.iter().copied().filter(|row| row.kind == HistogramKind::Lag);
    match lags().find(|row| row.clients.is_empty() && row.operation.is_empty()) {
        Some(whole) => vec![whole],
        None => lags().filter(|row| is_of_a_group(row)).collect(),
    }
}
