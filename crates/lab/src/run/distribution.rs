//! All values of one figure in one trial, small enough to be kept for every trial of a run.

use hdrhistogram::Histogram;

use crate::drive::empty_histogram;

/// Values by bucket, as the greatest of each with how many there are: some kilobytes, where a
/// histogram takes 200.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    buckets: Vec<(u64, u64)>,
}

impl Distribution {
    pub(super) fn of(histogram: &Histogram<u64>) -> Self {
        let recorded = histogram.iter_recorded();
        let bucket = |one: hdrhistogram::iterators::IterationValue<u64>| {
            (one.value_iterated_to(), one.count_at_value())
        };
        Self { buckets: recorded.map(bucket).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// How many values there are.
    pub(super) fn len(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// How many of the values are so.
    pub(super) fn count(&self, is: impl Fn(u64) -> bool) -> u64 {
        let those = self.buckets.iter().filter(|(value, _)| is(*value));
        those.map(|(_, count)| count).sum()
    }

    /// The value that this part of all doesn't exceed; `None` without any.
    pub(super) fn quantile(&self, part: f64) -> Option<u64> {
        Self::quantile_of_all([self], part)
    }

    /// The same of several distributions together, as histograms that are merged give it.
    pub(super) fn quantile_of_all<'a>(
        all: impl IntoIterator<Item = &'a Self>,
        part: f64,
    ) -> Option<u64> {
        let mut merged = empty_histogram();
        for (value, count) in all.into_iter().flat_map(|one| &one.buckets) {
            // It reaches to the longest latency, so recording can't fail.
            let _ = merged.record_n(*value, *count);
        }
        (!merged.is_empty()).then(|| merged.value_at_quantile(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_the_percentiles_of_the_histograms_merged() {
        let mut histograms = [empty_histogram(), empty_histogram()];
        for n in 1..=10_000_u64 {
            histograms[(n % 3 / 2) as usize].record(n * n % 99_991 * 1_000 + 1).unwrap();
        }
        let [first, second] = histograms.each_ref().map(Distribution::of);
        let mut merged = histograms[0].clone();
        merged.add(&histograms[1]).unwrap();
        for part in [0.01, 0.5, 0.99, 0.999, 1.0] {
            let quantile = Distribution::quantile_of_all([&first, &second], part);
            assert_eq!(quantile, Some(merged.value_at_quantile(part)), "{part}");
        }
        assert_eq!(first.len() + second.len(), 10_000);
        assert_eq!(first.count(|ns| ns > 0), first.len());
        assert_eq!(Distribution::default().quantile(0.5), None);
    }
}
