//! Histograms of latencies that are recorded by one addition each. Data plane.
//!
//! The buckets are HdrHistogram's for three digits, so that nothing is lost when a second's counts
//! become a histogram: 2,048 of one nanosecond, then 1,024 for each doubling (Tene,
//! "HdrHistogram", 2013). A second of counts is kept as its buckets that are not empty, some
//! kilobytes; a histogram would be 200 kB.

use hdrhistogram::Histogram;

/// Latencies are kept from 1 ns to this, to three digits; a longer one counts as this.
pub(crate) const LONGEST_NS: u64 = 60_000_000_000;

/// An empty histogram of latencies in nanoseconds.
pub fn empty_histogram() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "the bounds are constants that the crate accepts")]
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid")
}

/// Values below this have a bucket each.
const EXACT: u64 = 2048;

/// The buckets of one doubling.
const DOUBLING: usize = 1024;

/// The bucket of a value; a longer one than the longest counts as that.
#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.clamp(1, LONGEST_NS);
    let shift = (ns | (EXACT - 1)).ilog2() - (EXACT.ilog2() - 1);
    shift as usize * DOUBLING + (ns >> shift) as usize
}

/// The least value of a bucket.
fn least(bucket: usize) -> u64 {
    if bucket < EXACT as usize {
        return bucket as u64;
    }
    let shift = bucket / DOUBLING - 1;
    ((bucket - shift * DOUBLING) as u64) << shift
}

/// Counts values of nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    counts: Box<[u32]>,
    total: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { counts: vec![0; bucket(LONGEST_NS) + 1].into_boxed_slice(), total: 0 }
    }

    /// Counts one value.
    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        let count = &mut self.counts[bucket(ns)];
        *count = count.saturating_add(1);
        self.total += 1;
    }

    /// Counts a value `times` over, as far as a bucket can hold it.
    pub(super) fn record_all(&mut self, ns: u64, times: u64) {
        let count = &mut self.counts[bucket(ns)];
        let before = *count;
        *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        self.total += u64::from(*count - before);
    }

    /// Returns what was counted, if anything was, and begins anew.
    pub(super) fn take(&mut self) -> Option<Counted> {
        if self.total == 0 {
            return None;
        }
        let full = self.counts.iter_mut().enumerate().filter(|(_, count)| **count > 0);
        let buckets = full.map(|(bucket, count)| (bucket as u32, std::mem::take(count))).collect();
        Some(Counted { buckets, total: std::mem::take(&mut self.total) })
    }
}

/// Values that were counted, as buckets and how many are in each.
#[derive(Clone, Debug)]
pub struct Counted {
    buckets: Box<[(u32, u32)]>,
    total: u64,
}

impl Counted {
    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The greatest value, to the precision of its bucket: three digits.
    pub fn max(&self) -> u64 {
        self.buckets.last().map_or(0, |(bucket, _)| least(*bucket as usize + 1) - 1)
    }

    /// Adds the values to a histogram, which has to reach as far.
    pub fn add_to(&self, histogram: &mut Histogram<u64>) {
        for (bucket, count) in &self.buckets {
            let ns = least(*bucket as usize).max(1);
            // Every histogram here reaches to the longest latency, so recording can't fail.
            let _ = histogram.record_n(ns, u64::from(*count));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_bucket_begins_where_the_last_one_ends() {
        for index in 1..bucket(LONGEST_NS) {
            assert_eq!(bucket(least(index)), index);
            assert_eq!(bucket(least(index + 1) - 1), index);
        }
        assert_eq!(bucket(0), bucket(1));
        assert_eq!(bucket(u64::MAX), bucket(LONGEST_NS));
    }

    proptest! {
        #[test]
        fn what_is_counted_is_what_a_histogram_would_hold(
            values in prop::collection::vec((0_u64..70_000_000_000, 0_u32..37), 1..300),
        ) {
            let mut tally = Tally::new();
            let mut expected = empty_histogram();
            for (value, shift) in &values {
                tally.record(value >> shift);
                expected.record((value >> shift).clamp(1, LONGEST_NS)).unwrap();
            }
            let counted = tally.take().unwrap();
            let mut histogram = empty_histogram();
            counted.add_to(&mut histogram);
            // The whole histograms are too long to print.
            prop_assert!(histogram == expected);
            prop_assert_eq!((counted.len(), counted.max()), (expected.len(), expected.max()));
            prop_assert!(tally.take().is_none(), "it begins anew");
        }
    }
}
