//! Latency histograms as blobs and percentiles.
//!
//! A histogram is stored whole (HdrHistogram's V2 encoding, compressed by DEFLATE), because
//! percentiles can't be averaged or merged and histograms can: a point's p99 is the p99 of the
//! merged histograms of its valid trials. The percentiles beside the blob are for queries by
//! hand. Other languages' HdrHistogram libraries read the blob as it is.
//!
//! The blob of a whole trial has what it was given, three digits; that of one of its seconds keeps
//! two, because an open loop writes three of them a second and nothing else grows as fast.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::error::LedgerError;
use crate::ids::TrialId;
use crate::rows::HistogramRow;
use crate::word_columns::HistogramKind;

/// The largest blob that is decoded. One of a trial is 1 to 10 kB; this only guards against a
/// damaged file.
pub const BLOB_LIMIT_BYTES: usize = 16 << 20;

/// A histogram of nanoseconds as a blob: HdrHistogram V2 + DEFLATE.
///
/// Fails only when the histogram is too large for the encoding.
pub fn encode(histogram: &Histogram<u64>) -> Result<Vec<u8>, LedgerError> {
    let mut blob = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut blob).map_err(LedgerError::histogram)?;
    Ok(blob)
}

/// The histogram in a blob, which grows by itself when others are added to it.
///
/// Fails when the blob isn't a histogram or exceeds [`BLOB_LIMIT_BYTES`].
pub fn decode(mut blob: &[u8]) -> Result<Histogram<u64>, LedgerError> {
    if blob.len() > BLOB_LIMIT_BYTES {
        return Err(LedgerError::Histogram(format!("{} bytes are too many", blob.len())));
    }
    let mut histogram: Histogram<u64> =
        Deserializer::new().deserialize(&mut blob).map_err(LedgerError::histogram)?;
    histogram.auto(true);
    Ok(histogram)
}

/// The digits that the blob of a second keeps: values are right to a hundredth.
const DIGITS_OF_SECOND: u8 = 2;

/// The same values to fewer digits.
fn coarse(histogram: &Histogram<u64>) -> Result<Histogram<u64>, LedgerError> {
    let mut coarse = Histogram::new(DIGITS_OF_SECOND).map_err(LedgerError::histogram)?;
    coarse.add(histogram).map_err(LedgerError::histogram)?;
    Ok(coarse)
}

impl HistogramRow {
    /// The row of one histogram: its percentiles, and its blob, to two digits where it is that of
    /// one second.
    ///
    /// `clients` and `operation` are empty for "all"; `second` is `None` for the whole trial.
    pub fn of(
        trial_id: TrialId,
        clients: &str,
        operation: &str,
        kind: HistogramKind,
        second: Option<u32>,
        histogram: &Histogram<u64>,
    ) -> Result<HistogramRow, LedgerError> {
        // Of no values there is no least one: what wasn't seen is NULL, not zero.
        let seen = !histogram.is_empty();
        let quantile = |q: f64| seen.then(|| histogram.value_at_quantile(q));
        Ok(HistogramRow {
            trial_id,
            clients: clients.to_owned(),
            operation: operation.to_owned(),
            kind,
            second,
            count: histogram.len(),
            min_ns: seen.then(|| histogram.min()),
            mean_ns: seen.then(|| histogram.mean()),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: seen.then(|| histogram.max()),
            data: match second {
                None => encode(histogram)?,
                Some(_) => encode(&coarse(histogram)?)?,
            },
        })
    }

    /// The histogram itself.
    ///
    /// Fails when the blob is damaged.
    pub fn histogram(&self) -> Result<Histogram<u64>, LedgerError> {
        decode(&self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back_and_can_be_merged() {
        let mut fast = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        (1..=1000).for_each(|n| fast.record(n * 1000).unwrap());
        let mut slow = Histogram::<u64>::new(3).unwrap();
        slow.record_n(90_000_000_000, 1000).unwrap();
        let mut merged = decode(&encode(&fast).unwrap()).unwrap();
        assert_eq!(merged, fast);
        merged.add(decode(&encode(&slow).unwrap()).unwrap()).unwrap();
        assert_eq!(merged.len(), 2000);
        assert!(merged.value_at_quantile(0.99) >= 89_900_000_000);
    }

    #[test]
    fn a_second_keeps_two_digits_and_all_of_its_percentiles() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        let irregular = |n: u64| n * 7919 % 10_007 * (n % 13 + 1) + 1;
        (1..=9_999).for_each(|n| histogram.record(irregular(n)).unwrap());
        let row = |second| {
            let kind = HistogramKind::Service;
            HistogramRow::of(TrialId::from(1), "", "", kind, second, &histogram).unwrap()
        };
        let (trial, second) = (row(None), row(Some(3)));
        assert_eq!(trial.histogram().unwrap(), histogram);
        assert_eq!((trial.p50_ns, trial.p999_ns), (second.p50_ns, second.p999_ns));
        assert!(second.data.len() * 2 < trial.data.len());
        let kept = second.histogram().unwrap();
        assert_eq!(kept.len(), 9_999);
        for q in [0.0, 0.01, 0.5, 0.99, 1.0] {
            let ratio = kept.value_at_quantile(q) as f64 / histogram.value_at_quantile(q) as f64;
            assert!((0.99..1.01).contains(&ratio), "{q}: {ratio}");
        }
    }

    #[test]
    fn damage_is_an_error_and_emptiness_is_null() {
        assert!(decode(b"not a histogram").is_err());
        let empty = Histogram::<u64>::new(3).unwrap();
        let kind = HistogramKind::Lag;
        let row = HistogramRow::of(TrialId::from(1), "", "", kind, None, &empty).unwrap();
        assert_eq!((row.count, row.p99_ns, row.min_ns), (0, None, None));
    }
}
