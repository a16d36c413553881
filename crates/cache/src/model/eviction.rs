//! Evictions: the evicted item, statistics, and the observer of each.

use std::fmt;
use std::sync::Arc;

use super::clock::Seconds;

/// An item that is evicted to make room for others.
#[derive(Clone, Copy, Debug)]
pub struct Eviction<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its size in memory, in bytes: key, value and overhead.
    pub bytes: usize,
    /// The length of its value.
    pub value_bytes: usize,
    /// Seconds since the last read, or since the store of an item never read.
    pub idle_s: Seconds,
    /// Remaining lifetime in seconds; `None` without an expiry.
    pub left_s: Option<Seconds>,
    /// Whether it had ever been read.
    pub fetched: bool,
    /// Whether it had been read since the policy last judged it.
    pub active: bool,
}

/// A callback for each eviction. Called under a shard's lock, so it must not use the store.
#[derive(Clone)]
pub struct EvictionObserver(Arc<dyn Fn(&Eviction<'_>) + Send + Sync>);

impl EvictionObserver {
    /// An observer that calls `act`.
    pub fn new(act: impl Fn(&Eviction<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(act))
    }

    pub(super) fn notify(&self, eviction: &Eviction<'_>) {
        (self.0)(eviction);
    }
}

impl fmt::Debug for EvictionObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EvictionObserver")
    }
}

/// The number of buckets: one for 0 and one for each power of two.
const BUCKETS: usize = 33;

/// Counts by powers of two: 0, 1, 2 to 3, 4 to 7, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log2Histogram([u64; BUCKETS]);

impl Default for Log2Histogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Log2Histogram {
    fn add(&mut self, number: u32) {
        self.0[(u32::BITS - number.leading_zeros()) as usize] += 1;
    }

    fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        sum.0.iter_mut().zip(other.0).for_each(|(one, other)| *one += other);
        sum
    }

    /// The counts that are not 0, each with its first and last number.
    pub fn counted(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let all = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(power, count)| match power {
            0 => (0, 0, *count),
            _ => (1 << (power - 1), u32::MAX >> (BUCKETS - 1 - power), *count),
        })
    }
}

/// Statistics of evicted items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionStats {
    /// Idle time at eviction, in seconds.
    pub by_idle_s: Log2Histogram,
    /// Sizes in memory, in bytes.
    pub by_bytes: Log2Histogram,
    /// The sum of the sizes, in bytes.
    pub bytes: u64,
    /// Items that had an expiry.
    pub mortal: u64,
    /// Idle time of the last eviction, in seconds.
    pub last_idle_s: Seconds,
}

impl EvictionStats {
    pub(super) fn add(&mut self, eviction: &Eviction<'_>) {
        self.by_idle_s.add(eviction.idle_s);
        self.by_bytes.add(u32::try_from(eviction.bytes).unwrap_or(u32::MAX));
        self.bytes += eviction.bytes as u64;
        self.mortal += u64::from(eviction.left_s.is_some());
        self.last_idle_s = eviction.idle_s;
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            by_idle_s: self.by_idle_s.plus(&other.by_idle_s),
            by_bytes: self.by_bytes.plus(&other.by_bytes),
            bytes: self.bytes + other.bytes,
            mortal: self.mortal + other.mortal,
            // The order of evictions across shards is unknown: the longest idle time is reported.
            last_idle_s: self.last_idle_s.max(other.last_idle_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_by_powers_of_two() {
        let mut histogram = Log2Histogram::default();
        for number in [0, 1, 2, 3, 4, 7, 8, u32::MAX] {
            histogram.add(number);
        }
        let counted: Vec<_> = histogram.plus(&histogram).counted().collect();
        assert_eq!(
            counted,
            [(0, 0, 2), (1, 1, 2), (2, 3, 4), (4, 7, 4), (8, 15, 2), (1 << 31, u32::MAX, 2)]
        );
    }
}
