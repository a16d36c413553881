//! How the samples of operations in a process are spread.

use ledger::{Histogram, HistogramRow, LedgerError};

use crate::latency::overall;

/// The samples of one target at one point, in ns for an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSpread {
    /// The least.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub sigma_ns: f64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The histogram of the fastest 99 %: buckets of equal width from the least to the 99th
    /// percentile.
    pub fastest: Vec<u64>,
}

/// The buckets of the histogram.
const BUCKETS: usize = 32;

impl SampleSpread {
    /// Of these trials' histograms; `None` where there are no samples.
    pub(crate) fn of(trials: &[&[&HistogramRow]]) -> Result<Option<SampleSpread>, LedgerError> {
        let mut all: Option<Histogram<u64>> = None;
        for row in trials.iter().filter_map(|own| overall(own)) {
            let one = row.histogram()?;
            match &mut all {
                None => all = Some(one),
                Some(sum) => sum.add(one).map_err(LedgerError::histogram)?,
            }
        }
        Ok(all.filter(|all| !all.is_empty()).map(|all| SampleSpread {
            min_ns: all.min(),
            mean_ns: all.mean(),
            sigma_ns: all.stdev(),
            p99_ns: all.value_at_quantile(0.99),
            fastest: fastest(&all, BUCKETS),
        }))
    }
}

/// The histogram of the fastest 99 % of a distribution, in buckets of equal width: the slowest
/// percent would squeeze all others together.
pub fn fastest(histogram: &Histogram<u64>, buckets: usize) -> Vec<u64> {
    let (low, high) = (histogram.min(), histogram.value_at_quantile(0.99));
    let step = (high.saturating_sub(low) as f64 / buckets.max(1) as f64).max(1.0);
    let mut counts = vec![0; buckets];
    for one in histogram.iter_recorded().filter(|one| one.value_iterated_to() <= high) {
        let place = (one.value_iterated_to().saturating_sub(low) as f64 / step) as usize;
        if let Some(count) = counts.get_mut(place.min(buckets.saturating_sub(1))) {
            *count += one.count_since_last_iteration();
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_percent_is_left_out() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record_n(100, 500).unwrap();
        histogram.record_n(200, 495).unwrap();
        histogram.record_n(1_000_000, 5).unwrap();
        let counts = fastest(&histogram, 4);
        assert_eq!(counts, [500, 0, 0, 495]);
        assert_eq!(fastest(&Histogram::<u64>::new(3).unwrap(), 2), [0, 0]);
    }
}
